//! One step of a home: a name with gaps. It knows names only, and no folder.

/// A step of a home, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Exactly this.
    Text(String),
    /// `?`: one character.
    One,
    /// `*`: any characters or none.
    Any,
    /// `<session>` and its like: one character or more, which are a name.
    Name(Slot),
}

/// What a part of a path is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Session,
    Thread,
    Project,
}

/// The names in a part of a path.
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
    /// The pattern that this is the spelling of.
    pub(crate) fn of(step: &str) -> Pattern {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = step;
        while let Some(char) = rest.chars().next() {
            let slot = SLOTS.iter().find(|(spelled, _)| rest.starts_with(spelled));
            let (piece, length) = match (slot, char) {
                (Some((spelled, slot)), _) => (Piece::Name(*slot), spelled.len()),
                (None, '*') => (Piece::Any, 1),
                (None, '?') => (Piece::One, 1),
                (None, char) => {
                    match pieces.last_mut() {
                        Some(Piece::Text(text)) => text.push(char),
                        _ => pieces.push(Piece::Text(char.to_string())),
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

    /// The name, where it has no gaps.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether a name fits, and what the gaps in it say. What is hidden has to be asked for: a gap at the beginning fills no
    /// leading point.
    pub(crate) fn fits<'n>(&self, name: &'n str) -> Option<Names<'n>> {
        if let Some(text) = self.literal() {
            return (text == name).then(Names::default);
        }
        if name.starts_with('.') && !matches!(self.0.first(), Some(Piece::Text(_))) {
            return None;
        }
        if let Some(Piece::Text(end)) = self.0.last()
            && !name.ends_with(end.as_str())
        {
            return None;
        }
        let mut names = Names::default();
        fill(&self.0, name, &mut names).then_some(names)
    }
}

/// Fills the pieces with as little as they take.
fn fill<'n>(pieces: &[Piece], name: &'n str, names: &mut Names<'n>) -> bool {
    let Some((piece, pieces)) = pieces.split_first() else { return name.is_empty() };
    let (least, slot) = match piece {
        Piece::Text(text) => return name.strip_prefix(text.as_str()).is_some_and(|rest| fill(pieces, rest, names)),
        Piece::One => {
            let mut rest = name.chars();
            return rest.next().is_some() && fill(pieces, rest.as_str(), names);
        }
        Piece::Any => (0, None),
        Piece::Name(slot) => (1, Some(*slot)),
    };
    // A gap before the last text reaches exactly to it.
    let first = match pieces {
        [] => name.len(),
        [Piece::Text(end)] => name.len().saturating_sub(end.len()),
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

    /// The names that were found: session, thread, project.
    #[track_caller]
    fn fits(pattern: &str, name: &str, wanted: Option<[&str; 3]>) {
        let found = Pattern::of(pattern).fits(name);
        let names = |names: Names<'_>| {
            [names.session, names.thread, names.project].map(|name| name.unwrap_or_default().to_owned())
        };
        assert_eq!(found.map(names), wanted.map(|names| names.map(str::to_owned)), "{pattern} {name}");
    }

    const UNNAMED: Option<[&str; 3]> = Some([""; 3]);

    #[test]
    fn gaps_are_filled_and_named() {
        fits("agent-<thread>.jsonl", "agent-a1.jsonl", Some(["", "a1", ""]));
        fits("agent-<thread>.jsonl", "agent-.jsonl", None);
        fits("<session>.jsonl", "s.jsonl", Some(["s", "", ""]));
        fits("<session>.jsonl", "a.jsonl.jsonl", Some(["a.jsonl", "", ""]));
        fits("*.jsonl", "é.jsonl", UNNAMED);
        fits("*", "é", UNNAMED);
        fits("<session>", "é", Some(["é", "", ""]));
        fits("a*b?c", "aXbYc", UNNAMED);
        fits("a*b?c", "aXbc", None);
        fits("plain", "plain", UNNAMED);
        fits("plain", "plainer", None);
        fits("<project>--<session>", "p--s", Some(["s", "", "p"]));
    }

    #[test]
    fn a_moment_with_hyphens_is_told_from_an_id_with_hyphens() {
        let pattern = "rollout-????-??-??T??-??-??-<session>.jsonl";
        let name = "rollout-2026-01-02T03-04-05-0198-77aa.jsonl";
        fits(pattern, name, Some(["0198-77aa", "", ""]));
        fits("r-<session>_*.jsonl", "r-a-b_c_d.jsonl", Some(["a-b", "", ""]));
    }

    #[test]
    fn what_is_hidden_has_to_be_asked_for() {
        fits("*", ".lock", None);
        fits("<session>.jsonl", ".s.jsonl", None);
        fits(".*.jsonl", ".s.jsonl", UNNAMED);
    }
}
