//! The shortest unique names of sessions, which people can type.

use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::index::catalogue::{Catalogue, IndexedSession, SessionId};

/// The minimum length of a short name.
const SHORT_LENGTH_MIN: usize = 8;

/// For more sessions than this, reading all names takes less time than looking up the neighbours of each.
const NEIGHBOURS_MAX: usize = 500;

/// The shortest unique names of sessions.
#[derive(Debug, Default)]
pub struct ShortNames {
    names: HashMap<SessionId, String>,
    /// Sessions whose full name another session also has.
    shared: HashSet<SessionId>,
}

impl ShortNames {
    /// The names of all sessions of the catalogue.
    pub fn of(catalogue: &Catalogue) -> Result<ShortNames, Error> {
        Ok(ShortNames::among(catalogue.session_names()?))
    }

    /// The names of some sessions. Only the sessions next to one decide how short its name can be.
    pub fn of_some(catalogue: &Catalogue, sessions: &[&IndexedSession]) -> Result<ShortNames, Error> {
        if sessions.len() > NEIGHBOURS_MAX {
            return ShortNames::of(catalogue);
        }
        let mut names: HashMap<SessionId, String> = HashMap::new();
        for session in sessions {
            names.insert(session.id, session.name.clone());
            names.extend(catalogue.session_neighbours(session)?);
        }
        Ok(ShortNames::among(names.into_iter().collect()))
    }

    fn among(names: Vec<(SessionId, String)>) -> ShortNames {
        let mut names: Vec<(String, String, SessionId)> =
            names.into_iter().map(|(id, name)| (name.to_ascii_lowercase(), name, id)).collect();
        names.sort();
        let shared =
            |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let folded: Vec<&str> = names.iter().map(|(folded, ..)| folded.as_str()).collect();
        let (mut short_names, mut shared_names) = (HashMap::new(), HashSet::new());
        for (at, (name, original, id)) in names.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| folded.get(at));
            let neighbours = [before, folded.get(at + 1)].into_iter().flatten();
            if neighbours.clone().any(|other| other == name) {
                shared_names.insert(*id);
            }
            let length = neighbours.map(|other| shared(name, other) + 1).max().unwrap_or(0).max(SHORT_LENGTH_MIN);
            short_names.insert(*id, original.chars().take(length).collect());
        }
        ShortNames { names: short_names, shared: shared_names }
    }

    /// Whether the name of the session is unique.
    pub fn is_unique(&self, session: &IndexedSession) -> bool {
        !self.shared.contains(&session.id)
    }

    /// The shortest unique beginning of the session's name.
    pub fn name(&self, session: &IndexedSession) -> String {
        self.names.get(&session.id).unwrap_or(&session.name).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_unique_and_have_at_least_eight_characters() {
        let names = ["0198aaaa-1", "0198aaaa-2", "0198AAAA-22", "ffff0000-1", "main"];
        let short_names = ShortNames::among((0..).zip(names.map(str::to_owned)).collect());
        let short = |id: SessionId| short_names.names.get(&id).unwrap().as_str();
        assert_eq!([0, 1, 2, 3, 4].map(short), ["0198aaaa-1", "0198aaaa-2", "0198AAAA-22", "ffff0000", "main"]);
    }
}
