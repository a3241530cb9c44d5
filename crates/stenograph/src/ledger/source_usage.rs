//! The usage of one source: its model calls, and records that state usage and are not calls. `counting.rs` collects it;
//! `builder.rs` makes one ledger of the usage of all sources.

use std::collections::HashMap;
use std::num::NonZeroU32;

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use serde::{Deserialize, Serialize};

use super::Tokens;
use super::row::{Row, RowKind};
use crate::model::{Body, Event, Fact};

/// The model calls that one source states, or a part of it that was read at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceUsage {
    /// The names that rows refer to: sessions, models, folders.
    pub names: Vec<String>,
    /// The calls, in the order of their first records.
    pub rows: Vec<Row>,
    /// The records that do not count.
    pub uncounted: Vec<Uncounted>,
    /// The keys of replayed calls: as calls of the source's own session, and as calls of the session they come from.
    pub origins: Vec<(u128, u128)>,
    /// The keys of replayed calls, each with the key it has if that session itself replayed the call from an older one.
    pub older_origins: Vec<(u128, u128)>,
    /// The state of counting at the end of the part.
    pub state: CountingState,
}

/// The index of a name in [`SourceUsage::names`]. There are millions of them, so `Option<Name>` takes no extra space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name(NonZeroU32);

impl Name {
    /// The number of no name: the largest one.
    pub(super) const UNKNOWN: Name = Name(NonZeroU32::MAX);

    fn at(index: usize) -> Name {
        let number = u32::try_from(index).ok().and_then(|index| index.checked_add(1)).and_then(NonZeroU32::new);
        number.map_or(Name::UNKNOWN, Name)
    }

    /// Its index in the list of names.
    pub fn index(self) -> usize {
        usize::try_from(self.0.get() - 1).unwrap_or(usize::MAX)
    }
}

impl SourceUsage {
    /// Whether it has no calls, no uncounted records and no state.
    pub fn is_empty(&self) -> bool {
        *self == SourceUsage::default()
    }

    /// The usage without the tokens of runs, for runs whose calls another source states one by one. The stated costs of the
    /// runs stay: the builder subtracts the costs that the calls state.
    #[must_use]
    pub fn without_runs(mut self) -> SourceUsage {
        let is_run = |row: &&Row| row.kind == RowKind::Run;
        let lines: Vec<u64> = self.rows.iter().filter(is_run).map(|row| row.line).collect();
        if lines.is_empty() {
            return self;
        }
        self.uncounted.push(Uncounted { reason: UncountedReason::Sum, count: lines.len() as u64, lines });
        self.rows.retain(|row| row.kind != RowKind::Run || row.stated_cost.is_some());
        for run in self.rows.iter_mut().filter(|row| row.kind == RowKind::Run) {
            (run.tokens, run.calls) = (Tokens::default(), 0);
        }
        self
    }

    /// Appends the next part of the same source.
    pub fn append(&mut self, next: SourceUsage) {
        let mut names = Names::of(std::mem::take(&mut self.names));
        let of_next: Vec<Name> = next.names.iter().map(|name| names.number(name)).collect();
        self.rows.extend(next.rows.into_iter().map(|row| row.renamed(&of_next)));
        for more in next.uncounted {
            match self.uncounted.iter_mut().find(|own| own.reason == more.reason) {
                Some(own) => own.count += more.count,
                None => self.uncounted.push(more),
            }
        }
        self.origins.extend(next.origins);
        self.older_origins.extend(next.older_origins);
        (self.names, self.state) = (names.list, next.state);
    }

    /// The text of a name.
    pub fn name(&self, name: Option<Name>) -> Option<&str> {
        self.names.get(name?.index()).map(String::as_str)
    }
}

/// Records that do not count as calls of their own, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uncounted {
    /// The reason.
    pub reason: UncountedReason,
    /// The number of records.
    pub count: u64,
    /// The lines of the first few.
    pub lines: Vec<u64>,
}

/// Why a record does not count as a call of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UncountedReason {
    /// Another record of the same source states the same call: an agent writes a streamed answer piece by piece.
    Streamed,
    /// Another source has a copy of it: a session that was resumed, forked or copied.
    Copied,
    /// The record forwards a call that the sub-agent's own source states.
    Forwarded,
    /// It is in the history of the session that the source was forked from.
    Replayed,
    /// It repeats the running total without a call in between.
    RepeatedTotal,
    /// A total that counts includes it.
    WithinTotal,
    /// It sums up calls that are stated one by one.
    Sum,
    /// The agent made up the answer: no model was called.
    Synthetic,
    /// It states an invalid count.
    InvalidCount,
    /// The record is too large to be read.
    Oversize,
    /// A conversion for another agent repeats it.
    Converted,
}

impl UncountedReason {
    /// Every reason.
    pub const ALL: [UncountedReason; 11] = [
        UncountedReason::Streamed,
        UncountedReason::Copied,
        UncountedReason::Converted,
        UncountedReason::Forwarded,
        UncountedReason::Replayed,
        UncountedReason::RepeatedTotal,
        UncountedReason::WithinTotal,
        UncountedReason::Sum,
        UncountedReason::Synthetic,
        UncountedReason::InvalidCount,
        UncountedReason::Oversize,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            UncountedReason::Streamed => "streamed",
            UncountedReason::Copied => "copied",
            UncountedReason::Converted => "converted",
            UncountedReason::Forwarded => "passed_on",
            UncountedReason::Replayed => "replayed",
            UncountedReason::RepeatedTotal => "repeated_total",
            UncountedReason::WithinTotal => "within_total",
            UncountedReason::Sum => "sum",
            UncountedReason::Synthetic => "synthetic",
            UncountedReason::InvalidCount => "odd",
            UncountedReason::Oversize => "oversize",
        }
    }

    /// A sentence for people.
    pub fn says(self) -> &'static str {
        match self {
            UncountedReason::Streamed => {
                "a streamed answer written several times; the largest value of each counter counts"
            }
            UncountedReason::Copied => "a copy in another file (resumed, forked or copied); counted once",
            UncountedReason::Converted => "a call repeated in a converted file; counted once, for the original",
            UncountedReason::Forwarded => {
                "a sub-agent's call repeated by the calling agent; the sub-agent's own record counts"
            }
            UncountedReason::Replayed => "replayed history of the parent session; counted once, for that session",
            UncountedReason::RepeatedTotal => "the same running total again; no call in between",
            UncountedReason::WithinTotal => "already included in a counted total",
            UncountedReason::Sum => "a sum of calls that are counted one by one",
            UncountedReason::Synthetic => "an answer that the agent wrote itself; no model was called",
            UncountedReason::InvalidCount => {
                "an invalid token count (negative, fractional, too large or not a number); counted as 0"
            }
            UncountedReason::Oversize => "a record over the size limit; any usage in it is not counted",
        }
    }

    /// Whether it was merged with a row that counts, not excluded.
    pub fn is_merged(self) -> bool {
        match self {
            UncountedReason::Streamed
            | UncountedReason::Copied
            | UncountedReason::Converted
            | UncountedReason::Forwarded
            | UncountedReason::Replayed => true,
            UncountedReason::RepeatedTotal
            | UncountedReason::WithinTotal
            | UncountedReason::Sum
            | UncountedReason::Synthetic => false,
            UncountedReason::InvalidCount | UncountedReason::Oversize => false,
        }
    }
}

/// The state of counting between two records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountingState {
    /// When the source began.
    pub(super) began: Option<i64>,
    pub(super) session: Option<String>,
    pub(super) model: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    /// The replayed history at the start of the source, while it lasts.
    pub(super) replay: Option<Replay>,
    /// Whether that history is in another source.
    pub(super) is_history_elsewhere: bool,
    /// The session that the source is a copy of, whatever the copy is called: calls of both are the same calls.
    pub(super) copied_from: Option<String>,
    /// The line of the last record that was copied from there.
    pub(super) copied_until: u64,
    /// The last running total.
    pub(super) total: Option<Tokens>,
    /// How often the running total was reset.
    pub(super) resets: u32,
    /// Tools called since the last counted call.
    pub(super) tools: Vec<String>,
    /// The last answer: more of its tools may follow.
    pub(super) answer: Option<LastAnswer>,
}

impl CountingState {
    /// The session of an event: its own, or else that of the source.
    pub(super) fn session_of<'e>(&'e self, event: &'e Event<'_>) -> Option<&'e str> {
        let is_header = matches!(&event.body, Body::Fact { fact: Fact::Session, .. });
        let own = event.session.as_deref().filter(|_| !is_header || self.session.is_none());
        own.or(self.session.as_deref())
    }
}

/// The replayed history at the start of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Replay {
    /// The session it comes from, and older sessions that it states as origins of that one.
    pub of: Vec<String>,
    /// The time of its last record.
    pub last: i64,
}

/// An answer that may be incomplete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LastAnswer {
    /// A fingerprint of its id.
    pub group: u64,
    /// The key of its row, if it has one.
    pub key: Option<u128>,
    /// The tools that it called before it had a row.
    pub tools: Vec<String>,
}

/// Names and their numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub(crate) struct Names {
    pub list: Vec<String>,
    numbers: HashMap<String, Name, Xxh3DefaultBuilder>,
}

impl From<Vec<String>> for Names {
    fn from(list: Vec<String>) -> Names {
        Names::of(list)
    }
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Vec<String> {
        names.list
    }
}

impl Names {
    /// These names, numbered by index.
    pub fn of(list: Vec<String>) -> Names {
        let numbers = list.iter().zip(0..).map(|(name, index)| (name.clone(), Name::at(index))).collect();
        Names { list, numbers }
    }

    /// The number of a name; adds the name if it is new.
    pub fn number(&mut self, name: &str) -> Name {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = Name::at(self.list.len());
        self.list.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}
