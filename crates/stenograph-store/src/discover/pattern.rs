//! One component of a home: a name with placeholders. It knows names only, not folders.

/// A parsed component of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<PatternPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    /// Exactly this text.
    Text(String),
    /// `?`: one character.
    One,
    /// `*`: any number of characters.
    Any,
    /// `<session>` and the like: one or more characters that form a name.
    Name(Slot),
}

/// What a placeholder names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Session,
    Thread,
    Project,
}

/// The names found in a path component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names<'n> {
    /// The session.
    pub session: Option<&'n str>,
    /// The sub-agent.
    pub thread: Option<&'n str>,
    /// The project.
    pub project: Option<&'n str>,
}

const SLOTS: [(&str, Slot); 3] =
    [("<session>", Slot::Session), ("<thread>", Slot::Thread), ("<project>", Slot::Project)];

impl Pattern {
    /// Parses a pattern.
    pub(crate) fn of(step: &str) -> Pattern {
        let mut pieces: Vec<PatternPiece> = Vec::new();
        let mut rest = step;
        while let Some(char) = rest.chars().next() {
            let slot = SLOTS.iter().find(|(spelled, _)| rest.starts_with(spelled));
            let (piece, length) = match (slot, char) {
                (Some((spelled, slot)), _) => (PatternPiece::Name(*slot), spelled.len()),
                (None, '*') => (PatternPiece::Any, 1),
                (None, '?') => (PatternPiece::One, 1),
                (None, char) => {
                    match pieces.last_mut() {
                        Some(PatternPiece::Text(text)) => text.push(char),
                        _ => pieces.push(PatternPiece::Text(char.to_string())),
                    }
                    rest = rest.get(char.len_utf8()..).unwrap_or_default();
                    continue;
                }
            };
            pieces.push(piece);
            rest = rest.get(length..).unwrap_or_default();
        }
        Pattern(pieces)
    }

    /// The name, if it has no placeholders.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [PatternPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Matches a name and returns the placeholders' values. A placeholder at the beginning does not match a leading dot, so
    /// hidden names must be explicit.
    pub(crate) fn matches<'n>(&self, name: &'n str) -> Option<Names<'n>> {
        if let Some(text) = self.literal() {
            return (text == name).then(Names::default);
        }
        if name.starts_with('.') && !matches!(self.0.first(), Some(PatternPiece::Text(_))) {
            return None;
        }
        if let Some(PatternPiece::Text(end)) = self.0.last()
            && !name.ends_with(end.as_str())
        {
            return None;
        }
        let mut names = Names::default();
        fill(&self.0, name, &mut names).then_some(names)
    }
}

/// Matches the pieces, each as short as possible.
fn fill<'n>(pieces: &[PatternPiece], name: &'n str, names: &mut Names<'n>) -> bool {
    let Some((piece, pieces)) = pieces.split_first() else { return name.is_empty() };
    let (least, slot) = match piece {
        PatternPiece::Text(text) => {
            return name.strip_prefix(text.as_str()).is_some_and(|rest| fill(pieces, rest, names));
        }
        PatternPiece::One => {
            let mut rest = name.chars();
            return rest.next().is_some() && fill(pieces, rest.as_str(), names);
        }
        PatternPiece::Any => (0, None),
        PatternPiece::Name(slot) => (1, Some(*slot)),
    };
    // A placeholder before the last text extends exactly to it.
    let first = match pieces {
        [] => name.len(),
        [PatternPiece::Text(end)] => name.len().saturating_sub(end.len()),
        _ => 0,
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]).filter(|at| *at >= least.max(first));
    for end in ends {
        let (Some(filled), Some(rest)) = (name.get(..end), name.get(end..)) else { continue };
        if fill(pieces, rest, names) {
            match slot {
                Some(Slot::Session) => names.session = Some(filled),
                Some(Slot::Thread) => names.thread = Some(filled),
                Some(Slot::Project) => names.project = Some(filled),
                None => {}
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names found: session, thread, project.
    #[track_caller]
    fn matches(pattern: &str, name: &str, wanted: Option<[&str; 3]>) {
        let found = Pattern::of(pattern).matches(name);
        let names = |names: Names<'_>| {
            [names.session, names.thread, names.project].map(|name| name.unwrap_or_default().to_owned())
        };
        assert_eq!(found.map(names), wanted.map(|names| names.map(str::to_owned)), "{pattern} {name}");
    }

    const UNNAMED: Option<[&str; 3]> = Some([""; 3]);

    #[test]
    fn gaps_are_filled_and_named() {
        matches("agent-<thread>.jsonl", "agent-a1.jsonl", Some(["", "a1", ""]));
        matches("agent-<thread>.jsonl", "agent-.jsonl", None);
        matches("<session>.jsonl", "s.jsonl", Some(["s", "", ""]));
        matches("<session>.jsonl", "a.jsonl.jsonl", Some(["a.jsonl", "", ""]));
        matches("*.jsonl", "é.jsonl", UNNAMED);
        matches("*", "é", UNNAMED);
        matches("<session>", "é", Some(["é", "", ""]));
        matches("a*b?c", "aXbYc", UNNAMED);
        matches("a*b?c", "aXbc", None);
        matches("plain", "plain", UNNAMED);
        matches("plain", "plainer", None);
        matches("<project>--<session>", "p--s", Some(["s", "", "p"]));
    }

    #[test]
    fn a_time_with_hyphens_is_distinguished_from_an_id_with_hyphens() {
        let pattern = "rollout-????-??-??T??-??-??-<session>.jsonl";
        let name = "rollout-2026-01-02T03-04-05-0198-77aa.jsonl";
        matches(pattern, name, Some(["0198-77aa", "", ""]));
        matches("r-<session>_*.jsonl", "r-a-b_c_d.jsonl", Some(["a-b", "", ""]));
    }

    #[test]
    fn hidden_names_must_be_explicit() {
        matches("*", ".lock", None);
        matches("<session>.jsonl", ".s.jsonl", None);
        matches(".*.jsonl", ".s.jsonl", UNNAMED);
    }
}
