//! Which events `--kind` means: our kinds, roles, and the type names of the format itself. It must not name a format.

use std::collections::BTreeSet;

use stenograph::format::named;
use stenograph::model::{Body, Event, Role, Span};
use stenograph::text::Text;

/// What is asked for.
pub struct Selection {
    wanted: Vec<String>,
    /// The type names of the record that was begun last: they stand on its first part and mean all of them.
    types: Vec<String>,
    record: Option<Span>,
    seen: BTreeSet<String>,
}

/// Whether an event is asked for, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// It is not.
    No,
    /// By its kind or role, or because everything is.
    ByKind,
    /// By the name its format gives it.
    ByType,
}

/// How many kinds are remembered for the hint.
const SEEN_MAX: usize = 40;

impl Selection {
    /// A selection of these words; of everything when there are none.
    pub fn new(wanted: &[String]) -> Selection {
        Selection { wanted: wanted.to_vec(), types: Vec::new(), record: None, seen: BTreeSet::new() }
    }

    /// Whether this event is asked for.
    pub fn choose(&mut self, event: &Event<'_>) -> Chosen {
        if self.wanted.is_empty() {
            return Chosen::ByKind;
        }
        if event.part.index == 0 || event.at != self.record {
            self.types.clear();
            self.record = event.at;
        }
        self.types.extend(types(event));
        let role = event.role().map(Role::name);
        let ours = [Some(event.kind().name()), role].into_iter().flatten();
        let theirs = own_name(event).into_iter().chain(self.types.iter().map(String::as_str));
        let wanted = |name: &str| self.wanted.iter().any(|wanted| wanted == name);
        let chosen = match (ours.clone().any(wanted), theirs.clone().any(wanted)) {
            (_, true) => Chosen::ByType,
            (true, false) => Chosen::ByKind,
            (false, false) => Chosen::No,
        };
        if chosen == Chosen::No && self.seen.len() < SEEN_MAX {
            let names: Vec<String> = ours.chain(theirs).map(str::to_owned).collect();
            self.seen.extend(names);
        }
        chosen
    }

    /// The kinds that were there and not asked for.
    pub fn seen(&self) -> Vec<&str> {
        self.seen.iter().map(String::as_str).collect()
    }
}

/// The word of the source that the body itself keeps.
fn own_name<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match &event.body {
        Body::Fact { .. } | Body::Failure { .. } | Body::Other { .. } => event.name(),
        Body::Message { .. }
        | Body::Thinking { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Stop { .. } => None,
    }
}

/// The values of the fields that spell what a record is, in the words of the format it came from.
fn types(event: &Event<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (origin, residue) in event.extra.iter() {
        let Some(format) = named(origin) else { continue };
        let spelling = format.info().spelling;
        residue.each("", &mut |path, raw| {
            if spelling.contains(&path)
                && let Some(text) = Text::from_json(raw)
            {
                found.push(text.decode().into_owned());
            }
        });
    }
    found
}
