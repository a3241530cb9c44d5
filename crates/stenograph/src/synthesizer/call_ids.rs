//! The ids of calls and results in a file that is written. A target demands an id where the source states none: a call gets one that is
//! made up, and a result the id of its call, by position. Writers are below the folds, so the fold [`Calls`](crate::calls::Calls), which
//! decides outcomes and remembers fewer calls, is not at hand here.

use std::collections::VecDeque;

/// Gives ids to calls and results, in the order of a session.
#[derive(Clone, Debug, Default)]
pub struct CallIds {
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

impl CallIds {
    /// The id of a call: the stated one, else one that is made up.
    pub fn call(&mut self, id: Option<&str>, name: &str) -> String {
        let stated = id.is_some();
        let id = id.map_or_else(|| self.make(), str::to_owned);
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back(Open { id: id.clone(), name: name.to_owned(), stated });
        id
    }

    /// The id and the tool of the call that a result answers: the call with its id; for a result without an id the oldest call without
    /// one, else the oldest of all.
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

    /// An id for a result without a call.
    pub(crate) fn orphan(&mut self) -> String {
        self.make()
    }

    /// An id that no open call has. A file that was converted before may state such ids already.
    fn make(&mut self) -> String {
        loop {
            self.made += 1;
            let id = format!("call_steno_{}", self.made);
            if self.open.iter().all(|open| open.id != id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_pair_by_id_else_by_position() {
        let mut ids = CallIds::default();
        ids.call(Some("a"), "read");
        let made = ids.call(None, "edit");
        assert_eq!(ids.result(None), Some((made, "edit".into())));
        assert_eq!(ids.result(Some("b")), None);
        assert_eq!(ids.result(Some("a")), Some(("a".into(), "read".into())));
        assert_eq!(ids.result(None), None);
    }
}
