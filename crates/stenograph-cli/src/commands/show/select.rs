//! Selects events for `--kind` and `--type`. A kind is one of ours, or a role; a type is the format's own name for a record.
//! The two never mix: many formats name a record `user` that only holds a tool's result. This file must not name a format.

use std::collections::BTreeSet;

use stenograph::model::{Body, Event, Kind, Role, Span};
use stenograph::text::Text;

pub struct EventSelection {
    kinds: Vec<String>,
    wanted_types: Vec<String>,
    /// The type names of the current record: its first part has them, and they apply to all parts.
    types: Vec<String>,
    record: Option<Span>,
    seen_kinds: BTreeSet<&'static str>,
    seen_types: BTreeSet<String>,
}

/// Whether an event is selected, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    No,
    /// By its kind or role, or because everything is selected.
    ByKind,
    /// By the format's own name.
    ByType,
}

/// How many types are remembered for the hint.
const SEEN_MAX: usize = 40;

/// Parses a kind or a role, and returns its name.
pub fn kind(text: &str) -> Result<String, String> {
    let role = || Role::ALL.map(Role::name).into_iter().find(|name| *name == text);
    let name = Kind::named(text).map(Kind::word).or_else(role);
    name.map(str::to_owned).ok_or_else(|| {
        format!("not a kind or role; to select records by their type in the agent's own format, use --type {text}")
    })
}

impl EventSelection {
    /// Selects these kinds and roles, and these types; everything if there are none. If both are given, both must match.
    pub fn new(kinds: &[String], types: &[String]) -> EventSelection {
        EventSelection {
            kinds: kinds.to_vec(),
            wanted_types: types.to_vec(),
            types: Vec::new(),
            record: None,
            seen_kinds: BTreeSet::new(),
            seen_types: BTreeSet::new(),
        }
    }

    pub fn choose(&mut self, event: &Event<'_>) -> Selected {
        let is_kind = self.is_kind(event);
        if self.wanted_types.is_empty() {
            return if is_kind { Selected::ByKind } else { Selected::No };
        }
        if !event.continues_record_at(self.record) {
            self.types.clear();
            self.record = event.at;
        }
        self.types.extend(types(event));
        let names = own_name(event).into_iter().chain(self.types.iter().map(String::as_str));
        if is_kind && names.clone().any(|name| self.wanted_types.iter().any(|wanted| wanted == name)) {
            return Selected::ByType;
        }
        if self.seen_types.len() < SEEN_MAX {
            self.seen_types.extend(names.map(str::to_owned));
        }
        Selected::No
    }

    fn is_kind(&mut self, event: &Event<'_>) -> bool {
        if self.kinds.is_empty() {
            return true;
        }
        let names = [Some(event.kind().word()), event.role().map(Role::name)];
        let is_wanted = names.iter().flatten().any(|name| self.kinds.iter().any(|wanted| wanted == name));
        if !is_wanted {
            self.seen_kinds.extend(names.into_iter().flatten());
        }
        is_wanted
    }

    /// The kinds and roles that occurred and were not selected.
    pub fn seen_kinds(&self) -> Vec<&str> {
        self.seen_kinds.iter().copied().collect()
    }

    /// The types that occurred and were not selected.
    pub fn seen_types(&self) -> Vec<&str> {
        self.seen_types.iter().map(String::as_str).collect()
    }
}

/// The source's own name, if the body keeps it.
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

/// The fields that name a record's type, in the words of its format.
fn types(event: &Event<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (info, extra) in event.extra.known() {
        let spelling = info.spelling;
        extra.each("", &mut |path, raw| {
            if spelling.contains(&path)
                && let Some(text) = Text::from_json(raw)
            {
                found.push(text.decode().into_owned());
            }
        });
    }
    found
}
