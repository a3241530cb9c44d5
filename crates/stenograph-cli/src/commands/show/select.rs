//! Which events `--kind` and `--type` mean. A kind is one of ours, or a role; a type is the name that the format itself gives a record.
//! The two never mix: many formats call a record `user` that only holds the result of a tool. It must not name a format.

use std::collections::BTreeSet;

use stenograph::model::{Body, Event, Kind, Role, Span};
use stenograph::text::Text;

/// What is asked for.
pub struct Selection {
    kinds: Vec<String>,
    wanted_types: Vec<String>,
    /// The type names of the record that was begun last: they stand on its first part and mean all of them.
    types: Vec<String>,
    record: Option<Span>,
    seen_kinds: BTreeSet<&'static str>,
    seen_types: BTreeSet<String>,
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

/// How many types are remembered for the hint.
const SEEN_MAX: usize = 40;

/// Reads a kind or a role.
pub fn kind(text: &str) -> Result<String, String> {
    let mut names = Kind::ALL.map(Kind::name).into_iter().chain(Role::ALL.map(Role::name));
    match names.any(|name| name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("it is neither a kind nor a role; --type {text} chooses by the format's own name")),
    }
}

impl Selection {
    /// A selection of these kinds and roles, and of these types; of everything when there are none. Where both are given, both have
    /// to hold.
    pub fn new(kinds: &[String], types: &[String]) -> Selection {
        Selection {
            kinds: kinds.to_vec(),
            wanted_types: types.to_vec(),
            types: Vec::new(),
            record: None,
            seen_kinds: BTreeSet::new(),
            seen_types: BTreeSet::new(),
        }
    }

    /// Whether this event is asked for.
    pub fn choose(&mut self, event: &Event<'_>) -> Chosen {
        let is_kind = self.is_kind(event);
        if self.wanted_types.is_empty() {
            return if is_kind { Chosen::ByKind } else { Chosen::No };
        }
        if event.part.index == 0 || event.at != self.record {
            self.types.clear();
            self.record = event.at;
        }
        self.types.extend(types(event));
        let names = own_name(event).into_iter().chain(self.types.iter().map(String::as_str));
        if is_kind && names.clone().any(|name| self.wanted_types.iter().any(|wanted| wanted == name)) {
            return Chosen::ByType;
        }
        if self.seen_types.len() < SEEN_MAX {
            self.seen_types.extend(names.map(str::to_owned));
        }
        Chosen::No
    }

    fn is_kind(&mut self, event: &Event<'_>) -> bool {
        if self.kinds.is_empty() {
            return true;
        }
        let names = [Some(event.kind().name()), event.role().map(Role::name)];
        let is_wanted = names.iter().flatten().any(|name| self.kinds.iter().any(|wanted| wanted == name));
        if !is_wanted {
            self.seen_kinds.extend(names.into_iter().flatten());
        }
        is_wanted
    }

    /// The kinds and roles that were there and not asked for.
    pub fn seen_kinds(&self) -> Vec<&str> {
        self.seen_kinds.iter().copied().collect()
    }

    /// The types that were there and not asked for.
    pub fn seen_types(&self) -> Vec<&str> {
        self.seen_types.iter().map(String::as_str).collect()
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
    for (info, residue) in event.extra.known() {
        let spelling = info.spelling;
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
