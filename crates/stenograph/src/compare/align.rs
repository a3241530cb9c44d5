//! Aligns the steps of two conversations: first equal steps in order, then similar steps between them. The other steps are in one
//! conversation only.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde::Serialize;

use super::diff_step::{Class, DiffStep};
use super::vocabulary::Vocabulary;
use crate::loss::equal_pairs;

/// One of the two conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }

    /// The other conversation.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A difference or a run of equal steps, by indexes into the compared steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffChange {
    /// Equal steps.
    Same {
        /// The index of the first in A.
        a: usize,
        /// The index of the first in B.
        b: usize,
        /// The number of steps.
        count: usize,
    },
    /// An equal step at another position.
    Moved {
        /// The index in A.
        a: usize,
        /// The index in B.
        b: usize,
    },
    /// Two similar steps.
    Changed {
        /// The index in A.
        a: usize,
        /// The index in B.
        b: usize,
    },
    /// A step in one conversation only.
    Only {
        /// The conversation.
        side: Side,
        /// The index in it.
        at: usize,
    },
}

/// Steps of a kind that only one of the two formats can express. They are counted but not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncompared {
    /// The conversation that has them.
    pub side: Side,
    /// Their kind.
    pub class: Class,
    /// The number of steps.
    pub count: u64,
}

/// The number of steps by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Equal steps.
    pub same: u64,
    /// Equal steps at another position.
    pub moved: u64,
    /// Pairs of similar steps.
    pub changed: u64,
    /// Steps only in A.
    pub only_a: u64,
    /// Steps only in B.
    pub only_b: u64,
}

/// The comparison of two conversations.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The compared steps of A.
    pub a: Vec<DiffStep>,
    /// The compared steps of B.
    pub b: Vec<DiffStep>,
    /// The differences and equal steps, in order.
    pub changes: Vec<DiffChange>,
    /// The steps that are not compared.
    pub uncompared: Vec<Uncompared>,
    /// The only side whose format records failed calls, and their number. The comparison then ignores whether a call failed.
    pub failed_only: Option<(Side, u64)>,
}

impl Comparison {
    /// The number of steps by result.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for change in &self.changes {
            match change {
                DiffChange::Same { count, .. } => counts.same += *count as u64,
                DiffChange::Moved { .. } => counts.moved += 1,
                DiffChange::Changed { .. } => counts.changed += 1,
                DiffChange::Only { side: Side::A, .. } => counts.only_a += 1,
                DiffChange::Only { side: Side::B, .. } => counts.only_b += 1,
            }
        }
        counts
    }

    /// The number of equal steps before the first difference.
    pub fn shared(&self) -> usize {
        match self.changes.first() {
            Some(DiffChange::Same { count, .. }) => *count,
            Some(DiffChange::Moved { .. } | DiffChange::Changed { .. } | DiffChange::Only { .. }) | None => 0,
        }
    }

    /// Whether all compared steps are equal.
    pub fn is_equal(&self) -> bool {
        self.changes.iter().all(|change| matches!(change, DiffChange::Same { .. }))
    }
}

/// The similarity from which two steps between the same neighbours count as one changed step.
const SIMILARITY_MIN: f64 = 0.3;

/// The most steps that are searched for a similar one.
const AHEAD_MAX: usize = 32;

/// Compares two conversations. If the format of one cannot express a kind of step, and it has none, that kind is not compared.
pub fn compare(mut a: Vec<DiffStep>, mut b: Vec<DiffStep>, words: [&Vocabulary; 2]) -> Comparison {
    // If one side does not state who speaks, only the texts are compared.
    if a.iter().chain(&b).any(|step| step.class == Class::Unknown) {
        a = a.into_iter().map(DiffStep::without_speaker).collect();
        b = b.into_iter().map(DiffStep::without_speaker).collect();
    }
    let uncompared = remove_uncompared(&mut a, &mut b, words);
    let [words_a, words_b] = words;
    let failed = |side: &[DiffStep]| side.iter().filter(|step| step.has_failed).count() as u64;
    let failed_only = match (failed(&a), failed(&b)) {
        (0, 0) => None,
        (0, count) => Some((Side::B, count)).filter(|_| !words_a.has_failures),
        (count, 0) => Some((Side::A, count)).filter(|_| !words_b.has_failures),
        (_, _) => None,
    };
    if failed_only.is_none() {
        a = a.into_iter().map(DiffStep::with_outcome).collect();
        b = b.into_iter().map(DiffStep::with_outcome).collect();
    }
    let keys = |side: &[DiffStep]| side.iter().map(|step| step.key).collect::<Vec<_>>();
    let pairs = equal_pairs(&keys(&a), &keys(&b));
    let mut changes = Changes::default();
    let mut next = (0, 0);
    for (at_a, at_b) in pairs {
        changes.gap(&a, &b, next, (at_a, at_b));
        changes.same(at_a, at_b);
        next = (at_a + 1, at_b + 1);
    }
    changes.gap(&a, &b, next, (a.len(), b.len()));
    changes.find_moved(&a, &b);
    Comparison { changes: changes.0, a, b, uncompared, failed_only }
}

/// Removes the kinds of steps that the format of one side cannot express. Every format can express messages of users and assistants.
fn remove_uncompared(
    a: &mut Vec<DiffStep>,
    b: &mut Vec<DiffStep>,
    [words_a, words_b]: [&Vocabulary; 2],
) -> Vec<Uncompared> {
    let mut counts: BTreeMap<Class, [u64; 2]> = BTreeMap::new();
    for (side, steps) in [&*a, &*b].into_iter().enumerate() {
        for step in steps {
            if let Some(count) = counts.entry(step.class).or_default().get_mut(side) {
                *count += 1;
            }
        }
    }
    let mut uncompared = Vec::new();
    for (class, [in_a, in_b]) in counts {
        let is_in_every_format = matches!(class, Class::User | Class::Assistant | Class::Unknown);
        let (side, count) = match (in_a, in_b) {
            (0, count) if !words_a.has(class) => (Side::B, count),
            (count, 0) if !words_b.has(class) => (Side::A, count),
            _ => continue,
        };
        if !is_in_every_format {
            uncompared.push(Uncompared { side, class, count });
            a.retain(|step| step.class != class);
            b.retain(|step| step.class != class);
        }
    }
    uncompared
}

#[derive(Default)]
struct Changes(Vec<DiffChange>);

impl Changes {
    fn same(&mut self, at_a: usize, at_b: usize) {
        if let Some(DiffChange::Same { a, b, count }) = self.0.last_mut()
            && *a + *count == at_a
            && *b + *count == at_b
        {
            *count += 1;
            return;
        }
        self.0.push(DiffChange::Same { a: at_a, b: at_b, count: 1 });
    }

    /// Adds the steps between two pairs of equal steps.
    fn gap(&mut self, a: &[DiffStep], b: &[DiffStep], from: (usize, usize), to: (usize, usize)) {
        let mut next_b = from.1;
        for at_a in from.0..to.0 {
            let ahead = next_b..to.1.min(next_b.saturating_add(AHEAD_MAX));
            let found = a.get(at_a).and_then(|step| {
                let candidates = ahead.clone().filter_map(|at| b.get(at).map(|other| (at, other)));
                candidates.into_iter().find(|(_, other)| is_changed(step, other)).map(|(at, _)| at)
            });
            match found {
                Some(at_b) => {
                    (next_b..at_b).for_each(|at| self.0.push(DiffChange::Only { side: Side::B, at }));
                    self.0.push(DiffChange::Changed { a: at_a, b: at_b });
                    next_b = at_b + 1;
                }
                None => self.0.push(DiffChange::Only { side: Side::A, at: at_a }),
            }
        }
        (next_b..to.1).for_each(|at| self.0.push(DiffChange::Only { side: Side::B, at }));
    }
}

impl Changes {
    /// Finds equal steps in another order: formats order parallel calls and their results differently.
    fn find_moved(&mut self, a: &[DiffStep], b: &[DiffStep]) {
        let mut in_b: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for change in &self.0 {
            if let DiffChange::Only { side: Side::B, at } = change
                && let Some(step) = b.get(*at)
            {
                in_b.entry(step.key).or_default().push_back(*at);
            }
        }
        let mut moved: HashSet<usize> = HashSet::new();
        for change in &mut self.0 {
            if let DiffChange::Only { side: Side::A, at } = *change
                && let Some(step) = a.get(at)
                && let Some(found) = in_b.get_mut(&step.key).and_then(VecDeque::pop_front)
            {
                moved.insert(found);
                *change = DiffChange::Moved { a: at, b: found };
            }
        }
        self.0.retain(|change| !matches!(change, DiffChange::Only { side: Side::B, at } if moved.contains(at)));
    }
}

/// Whether a step is a changed version of another: they are of one kind, and have the same call id or similar texts.
fn is_changed(one: &DiffStep, other: &DiffStep) -> bool {
    let has_same_call = one.call != 0 && one.call == other.call;
    one.class == other.class && (has_same_call || one.similarity(other) >= SIMILARITY_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::model::{Body, Content, Event, Role};

    fn steps(messages: &[(Role, &'static str)]) -> Vec<DiffStep> {
        let step = |(number, (role, text)): (u64, &(Role, &'static str))| {
            DiffStep::of(number, &Event::new(Body::Message { role: *role, content: Content::text(*text) })).unwrap()
        };
        (1..).zip(messages).map(step).collect()
    }

    #[test]
    fn the_first_difference_is_found() {
        use Role::{Assistant, User};
        let a = [(User, "fix it"), (Assistant, "I will look at the parser first"), (User, "and now the tests")];
        let b = [(User, "fix it"), (Assistant, "I will look at the printer first"), (Assistant, "done")];
        let found = compare(steps(&a), steps(&b), [&Vocabulary::all(), &Vocabulary::all()]);
        assert_eq!(
            found.changes,
            [
                DiffChange::Same { a: 0, b: 0, count: 1 },
                DiffChange::Changed { a: 1, b: 1 },
                DiffChange::Only { side: Side::A, at: 2 },
                DiffChange::Only { side: Side::B, at: 2 },
            ]
        );
        assert_eq!((found.shared(), found.is_equal()), (1, false));
        assert_eq!(found.counts(), Counts { same: 1, moved: 0, changed: 1, only_a: 1, only_b: 1 });
    }

    #[test]
    fn a_kind_that_one_format_cannot_express_is_not_compared() {
        use Role::{System, User};
        let a = [(System, "rules"), (User, "fix it")];
        let found = compare(
            steps(&a),
            steps(&a[1..]),
            [&Vocabulary::all(), &Vocabulary::of(Registry::built_in().named("claude-code"))],
        );
        assert!(found.is_equal());
        assert_eq!(found.uncompared, [Uncompared { side: Side::A, class: Class::Instructions, count: 1 }]);
        assert!(!compare(steps(&a), steps(&a[1..]), [&Vocabulary::all(), &Vocabulary::all()]).is_equal());
    }

    #[test]
    fn a_moved_step_is_not_a_missing_step() {
        use Role::User;
        let a = [(User, "one"), (User, "two"), (User, "three"), (User, "four")];
        let b = [(User, "one"), (User, "three"), (User, "four"), (User, "two")];
        let found = compare(steps(&a), steps(&b), [&Vocabulary::all(), &Vocabulary::all()]);
        assert_eq!(found.counts(), Counts { same: 3, moved: 1, ..Counts::default() });
        assert!(!found.is_equal());
    }

    #[test]
    fn two_empty_conversations_are_equal() {
        let found = compare(Vec::new(), Vec::new(), [&Vocabulary::all(), &Vocabulary::all()]);
        assert!(found.is_equal() && found.shared() == 0);
    }
}
