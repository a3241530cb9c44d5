//! Which result belongs to which call: by id, and where ids are missing by position.

use std::collections::VecDeque;

/// Follows calls and results of a session in order.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    open: VecDeque<Open>,
    made: u64,
}

#[derive(Clone, Debug)]
struct Open {
    id: String,
    name: String,
    stated: bool,
}

/// How many unanswered calls are remembered.
const OPEN_MAX: usize = 4096;

impl Pairing {
    /// A call. Gives its id, made up when it has none.
    pub fn call(&mut self, id: Option<&str>, name: &str) -> String {
        let stated = id.is_some();
        let id = id.map_or_else(|| self.make(), str::to_owned);
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back(Open { id: id.clone(), name: name.to_owned(), stated });
        id
    }

    /// A result. Gives the id and the tool of the call it answers: the one with its id; for a result
    /// without one the oldest call without one, else the oldest of all.
    pub fn result(&mut self, id: Option<&str>) -> Option<(String, String)> {
        let at = match id {
            Some(id) => self.open.iter().position(|open| open.id == id)?,
            None => {
                self.open.iter().position(|open| !open.stated).or(if self.open.is_empty() { None } else { Some(0) })?
            }
        };
        let open = self.open.remove(at)?;
        Some((open.id, open.name))
    }

    /// An id for a result whose call was never seen.
    pub fn orphan(&mut self) -> String {
        self.make()
    }

    /// An id that no open call has: a file that was converted before may state such ids already.
    fn make(&mut self) -> String {
        loop {
            self.made += 1;
            let id = format!("call_steno_{}", self.made);
            if self.open.iter().all(|open| open.id != id) {
                return id;
            }
        }
    }

    /// Calls that have no result yet: ids and tools, oldest first.
    pub fn unanswered(&self) -> impl Iterator<Item = (&str, &str)> {
        self.open.iter().map(|open| (open.id.as_str(), open.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_pair_by_id_else_by_position() {
        let mut pairing = Pairing::default();
        pairing.call(Some("a"), "read");
        let made = pairing.call(None, "edit");
        assert_eq!(pairing.result(None), Some((made, "edit".into())));
        assert_eq!(pairing.result(Some("b")), None);
        assert_eq!(pairing.result(Some("a")), Some(("a".into(), "read".into())));
        assert_eq!(pairing.result(None), None);
    }
}
