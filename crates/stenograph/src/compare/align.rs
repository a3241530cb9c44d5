//! Which steps of two conversations belong together: those that say the same, in order; between them those that are alike; and the rest,
//! which only one of them has.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::diff_step::{Class, DiffStep};
use super::vocabulary::Vocabulary;
use crate::loss::equal_pairs;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }
}

/// What became of steps, by their places among those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many from here on say the same.
    Same {
        /// The first in A.
        a: usize,
        /// The first in B.
        b: usize,
        /// How many.
        count: usize,
    },
    /// It says the same, and stands elsewhere.
    Moved {
        /// In A.
        a: usize,
        /// In B.
        b: usize,
    },
    /// They are alike, and not the same.
    Changed {
        /// In A.
        a: usize,
        /// In B.
        b: usize,
    },
    /// Only one has it.
    Only {
        /// Which one.
        side: Side,
        /// Where in it.
        at: usize,
    },
}

/// Steps of a kind that only one of two formats tells of: they are counted and not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Who tells of them.
    pub side: Side,
    /// What they are.
    pub class: Class,
    /// How many.
    pub count: u64,
}

/// How many steps came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// They say the same.
    pub same: u64,
    /// They say the same, and stand elsewhere.
    pub moved: u64,
    /// They are alike.
    pub changed: u64,
    /// Only A has them.
    pub only_a: u64,
    /// Only B has them.
    pub only_b: u64,
}

/// Two conversations side by side.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The steps of A that are compared.
    pub a: Vec<DiffStep>,
    /// Those of B.
    pub b: Vec<DiffStep>,
    /// What became of them, in order.
    pub changes: Vec<Change>,
    /// What was not compared.
    pub aside: Vec<Aside>,
    /// The side that alone tells of failed calls, and of how many. Its results are compared by what they say.
    pub failed_only: Option<(Side, u64)>,
}

impl Comparison {
    /// How many came out how.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for change in &self.changes {
            match change {
                Change::Same { count, .. } => counts.same += *count as u64,
                Change::Moved { .. } => counts.moved += 1,
                Change::Changed { .. } => counts.changed += 1,
                Change::Only { side: Side::A, .. } => counts.only_a += 1,
                Change::Only { side: Side::B, .. } => counts.only_b += 1,
            }
        }
        counts
    }

    /// How many steps are the same before the first that is not.
    pub fn shared(&self) -> usize {
        match self.changes.first() {
            Some(Change::Same { count, .. }) => *count,
            Some(Change::Moved { .. } | Change::Changed { .. } | Change::Only { .. }) | None => 0,
        }
    }

    /// Whether all that is compared is the same.
    pub fn is_equal(&self) -> bool {
        self.changes.iter().all(|change| matches!(change, Change::Same { .. }))
    }
}

/// From this likeness on two steps between the same neighbours are one that changed.
const LIKENESS_MIN: f64 = 0.3;

/// How far ahead a step is looked for that is like another.
const AHEAD_MAX: usize = 32;

/// Compares two conversations. A kind of step that one of them has none of is not compared where its format has no words for it.
pub fn compare(mut a: Vec<DiffStep>, mut b: Vec<DiffStep>, words: [&Vocabulary; 2]) -> Comparison {
    // Where one side does not say who speaks, what is said has to do.
    if a.iter().chain(&b).any(|step| step.class == Class::Unknown) {
        a = a.into_iter().map(DiffStep::by_anybody).collect();
        b = b.into_iter().map(DiffStep::by_anybody).collect();
    }
    let aside = set_aside(&mut a, &mut b, words);
    let [words_a, words_b] = words;
    let failed = |side: &[DiffStep]| side.iter().filter(|step| step.has_failed).count() as u64;
    let failed_only = match (failed(&a), failed(&b)) {
        (0, 0) => None,
        (0, count) => Some((Side::B, count)).filter(|_| !words_a.has_failures),
        (count, 0) => Some((Side::A, count)).filter(|_| !words_b.has_failures),
        (_, _) => None,
    };
    if failed_only.is_none() {
        a = a.into_iter().map(DiffStep::by_outcome).collect();
        b = b.into_iter().map(DiffStep::by_outcome).collect();
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
    Comparison { changes: changes.0, a, b, aside, failed_only }
}

/// Takes out the kinds that the format of one side has no words for. What users and assistants say, every format tells.
fn set_aside(a: &mut Vec<DiffStep>, b: &mut Vec<DiffStep>, [words_a, words_b]: [&Vocabulary; 2]) -> Vec<Aside> {
    let mut counts: BTreeMap<Class, [u64; 2]> = BTreeMap::new();
    for (side, steps) in [&*a, &*b].into_iter().enumerate() {
        for step in steps {
            if let Some(count) = counts.entry(step.class).or_default().get_mut(side) {
                *count += 1;
            }
        }
    }
    let mut aside = Vec::new();
    for (class, [in_a, in_b]) in counts {
        let is_told_by_all = matches!(class, Class::User | Class::Assistant | Class::Unknown);
        let (side, count) = match (in_a, in_b) {
            (0, count) if !words_a.has(class) => (Side::B, count),
            (count, 0) if !words_b.has(class) => (Side::A, count),
            _ => continue,
        };
        if !is_told_by_all {
            aside.push(Aside { side, class, count });
            a.retain(|step| step.class != class);
            b.retain(|step| step.class != class);
        }
    }
    aside
}

#[derive(Default)]
struct Changes(Vec<Change>);

impl Changes {
    fn same(&mut self, at_a: usize, at_b: usize) {
        if let Some(Change::Same { a, b, count }) = self.0.last_mut()
            && *a + *count == at_a
            && *b + *count == at_b
        {
            *count += 1;
            return;
        }
        self.0.push(Change::Same { a: at_a, b: at_b, count: 1 });
    }

    /// What stands between two places where both agree.
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
                    (next_b..at_b).for_each(|at| self.0.push(Change::Only { side: Side::B, at }));
                    self.0.push(Change::Changed { a: at_a, b: at_b });
                    next_b = at_b + 1;
                }
                None => self.0.push(Change::Only { side: Side::A, at: at_a }),
            }
        }
        (next_b..to.1).for_each(|at| self.0.push(Change::Only { side: Side::B, at }));
    }
}

impl Changes {
    /// Finds steps that both have, in another order: formats differ in how they put parallel calls and their answers.
    fn find_moved(&mut self, a: &[DiffStep], b: &[DiffStep]) {
        let mut in_b: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for change in &self.0 {
            if let Change::Only { side: Side::B, at } = change
                && let Some(step) = b.get(*at)
            {
                in_b.entry(step.key).or_default().push_back(*at);
            }
        }
        let mut moved: HashSet<usize> = HashSet::new();
        for change in &mut self.0 {
            if let Change::Only { side: Side::A, at } = *change
                && let Some(step) = a.get(at)
                && let Some(found) = in_b.get_mut(&step.key).and_then(VecDeque::pop_front)
            {
                moved.insert(found);
                *change = Change::Moved { a: at, b: found };
            }
        }
        self.0.retain(|change| !matches!(change, Change::Only { side: Side::B, at } if moved.contains(at)));
    }
}

/// Whether one step is another that was changed: they are of one kind, and tied by their call or alike.
fn is_changed(one: &DiffStep, other: &DiffStep) -> bool {
    let is_tied = one.call != 0 && one.call == other.call;
    one.class == other.class && (is_tied || one.likeness(other) >= LIKENESS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::model::{Body, Content, Event, Role};

    fn steps(said: &[(Role, &'static str)]) -> Vec<DiffStep> {
        let step = |(number, (role, text)): (u64, &(Role, &'static str))| {
            DiffStep::of(number, &Event::new(Body::Message { role: *role, content: Content::text(*text) })).unwrap()
        };
        (1..).zip(said).map(step).collect()
    }

    #[test]
    fn where_two_runs_part_is_found() {
        use Role::{Assistant, User};
        let a = [(User, "fix it"), (Assistant, "I will look at the parser first"), (User, "and now the tests")];
        let b = [(User, "fix it"), (Assistant, "I will look at the printer first"), (Assistant, "done")];
        let found = compare(steps(&a), steps(&b), [&Vocabulary::whole(), &Vocabulary::whole()]);
        assert_eq!(
            found.changes,
            [
                Change::Same { a: 0, b: 0, count: 1 },
                Change::Changed { a: 1, b: 1 },
                Change::Only { side: Side::A, at: 2 },
                Change::Only { side: Side::B, at: 2 },
            ]
        );
        assert_eq!((found.shared(), found.is_equal()), (1, false));
        assert_eq!(found.counts(), Counts { same: 1, moved: 0, changed: 1, only_a: 1, only_b: 1 });
    }

    #[test]
    fn what_only_one_format_tells_of_is_set_aside() {
        use Role::{System, User};
        let a = [(System, "rules"), (User, "fix it")];
        let found = compare(
            steps(&a),
            steps(&a[1..]),
            [&Vocabulary::whole(), &Vocabulary::of(Registry::built_in().named("claude-code"))],
        );
        assert!(found.is_equal());
        assert_eq!(found.aside, [Aside { side: Side::A, class: Class::Instructions, count: 1 }]);
        assert!(!compare(steps(&a), steps(&a[1..]), [&Vocabulary::whole(), &Vocabulary::whole()]).is_equal());
    }

    #[test]
    fn what_stands_elsewhere_is_told_from_what_is_not_there() {
        use Role::User;
        let a = [(User, "one"), (User, "two"), (User, "three"), (User, "four")];
        let b = [(User, "one"), (User, "three"), (User, "four"), (User, "two")];
        let found = compare(steps(&a), steps(&b), [&Vocabulary::whole(), &Vocabulary::whole()]);
        assert_eq!(found.counts(), Counts { same: 3, moved: 1, ..Counts::default() });
        assert!(!found.is_equal());
    }

    #[test]
    fn nothing_and_nothing_are_equal() {
        let found = compare(Vec::new(), Vec::new(), [&Vocabulary::whole(), &Vocabulary::whole()]);
        assert!(found.is_equal() && found.shared() == 0);
    }
}
