//! The account of a conversion: how many events of each kind came through, and what happened to the rest. Counts are complete;
//! examples are a few of each.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::model::{Kind, Span};

/// What happened to an event or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// It is not there any more.
    Dropped {
        /// Why, where it is known; empty where the target simply has no place for it.
        why: &'static str,
    },
    /// It is shorter.
    Cut,
    /// It is there, and says something else.
    Changed,
    /// It is there, in another place.
    Moved,
    /// The source does not state it; the target demands it.
    Invented,
}

impl How {
    /// The word in reports and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            How::Dropped { .. } => "dropped",
            How::Cut => "cut",
            How::Changed => "changed",
            How::Moved => "moved",
            How::Invented => "invented",
        }
    }

    /// Whether something the source said is gone.
    pub fn is_loss(self) -> bool {
        match self {
            How::Dropped { .. } | How::Cut | How::Changed => true,
            How::Moved | How::Invented => false,
        }
    }
}

/// How often one thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often.
    pub times: u64,
    /// For what was cut: how many bytes are left.
    pub kept: u64,
    /// For what was cut: of how many.
    pub of: u64,
    /// Where in the source it happened, the first few times.
    pub examples: Vec<Span>,
    /// For what was left out and nothing else says: on which lines of the source it stands, each run with its last line.
    pub lines: Vec<(u64, u64)>,
}

impl Count {
    /// Names the record that was left out.
    pub(super) fn name(&mut self, at: Option<Span>) {
        let Some(line) = at.map(|at| at.line).filter(|line| *line != Span::LINE_UNKNOWN) else { return };
        let count = self.lines.len();
        match self.lines.last_mut() {
            Some((_, last)) if line == *last || line == *last + 1 => *last = line,
            _ if count < RUNS_MAX => self.lines.push((line, line)),
            _ => {}
        }
    }

    /// The lines in words, at most the first few runs of them.
    fn named(&self) -> String {
        let run = |(first, last): &(u64, u64)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let shown: Vec<String> = self.lines.iter().take(RUNS_SHOWN).map(run).collect();
        let more = if self.lines.len() > RUNS_SHOWN { ", ..." } else { "" };
        let plural = if matches!(self.lines.as_slice(), [(first, last)] if first == last) { "" } else { "s" };
        match shown.is_empty() {
            true => String::new(),
            false => format!("; line{plural} {}{more}", shown.join(", ")),
        }
    }
}

/// How many runs of lines are named of each thing: whoever needs more asks for the branches themselves.
const RUNS_MAX: usize = 1_024;

/// How many of them are shown to people.
const RUNS_SHOWN: usize = 6;

/// The field that an event which stands in another place moved in.
pub(crate) const ORDER: &str = "order";

/// How many examples are kept of each thing.
const EXAMPLES_MAX: usize = 3;

/// How many different things are told apart: a source may invent as many field names as it likes.
const DISTINCT_MAX: usize = 4096;

/// The account of one conversion.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Events read, by kind.
    pub read: BTreeMap<Kind, u64>,
    /// Events that came through, whole or in part, by kind.
    pub kept: BTreeMap<Kind, u64>,
    /// What happened, by kind of event, field and manner. The empty field is the event itself.
    pub losses: BTreeMap<(Kind, String, How), Count>,
}

impl Report {
    /// Notes that something happened.
    pub fn add(&mut self, kind: Kind, field: &str, how: How, at: Option<Span>) -> &mut Count {
        let mut key = (kind, field.to_owned(), how);
        if self.losses.len() >= DISTINCT_MAX && !self.losses.contains_key(&key) {
            key.1 = "(other fields)".to_owned();
        }
        let count = self.losses.entry(key).or_default();
        count.times += 1;
        if count.examples.len() < EXAMPLES_MAX {
            count.examples.extend(at);
        }
        count
    }

    /// Whether something the source said is gone.
    pub fn is_lossy(&self) -> bool {
        self.losses.keys().any(|(_, _, how)| how.is_loss())
    }

    /// Whether events stand in another order.
    pub fn is_reordered(&self) -> bool {
        self.losses.keys().any(|(_, field, how)| field == ORDER && *how == How::Moved)
    }

    /// One line for each kind of event: what came through, and what did not.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in Kind::ALL {
            let read = self.read.get(&kind).copied().unwrap_or(0);
            let kept = self.kept.get(&kind).copied().unwrap_or(0);
            let mut remarks = Vec::new();
            for how in ["dropped", "cut", "changed", "moved", "invented"] {
                remarks.extend(self.remark(kind, how));
            }
            if read > 0 || !remarks.is_empty() {
                let remarks = if remarks.is_empty() { "whole".to_owned() } else { remarks.join("; ") };
                lines.push(format!("{:<12} {kept} of {read} kept; {remarks}", kind.name()));
            }
        }
        lines
    }

    /// What happened in one manner to the events of a kind. The fields of the model are named; those that only the source's
    /// format has are counted, for there are many, and the whole report names them.
    fn remark(&self, kind: Kind, how: &str) -> Option<String> {
        let mut said = Vec::new();
        let mut fields: Vec<String> = Vec::new();
        let mut extra = 0;
        for ((of, field, manner), count) in &self.losses {
            if *of == kind && manner.name() == how {
                match (field.as_str(), manner) {
                    ("", How::Dropped { why }) if !why.is_empty() => {
                        said.push(format!("{} left out ({why}{})", count.times, count.named()));
                    }
                    ("", _) => said.push(format!("{} {how}", count.times)),
                    (field, _) if field.starts_with("extra.") => extra += 1,
                    (field, _) => fields.push(format!("{field} ×{}", count.times)),
                }
            }
        }
        if extra > 0 {
            let plural = if extra == 1 { "" } else { "s" };
            fields.push(format!("{extra} field{plural} of its own"));
        }
        if !fields.is_empty() {
            said.push(format!("{how} {}", fields.join(", ")));
        }
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The whole report as JSON.
    pub fn to_json(&self) -> String {
        // A map with text as its keys always has a spelling.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for Report {
    /// The lines of [`Report::summary`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.summary().join("\n"))
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Report", 3)?;
        object.serialize_field("read", &self.read)?;
        object.serialize_field("kept", &self.kept)?;
        let losses: Vec<Loss<'_>> = self.losses.iter().map(Loss::of).collect();
        object.serialize_field("losses", &losses)?;
        object.end()
    }
}

/// One entry of [`Report::losses`] as programs see it.
#[derive(Serialize)]
struct Loss<'r> {
    kind: Kind,
    field: &'r str,
    how: How,
    times: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out_lines: &'r [(u64, u64)],
}

impl<'r> Loss<'r> {
    fn of(((kind, field, how), count): (&'r (Kind, String, How), &'r Count)) -> Loss<'r> {
        let is_cut = *how == How::Cut;
        Loss {
            kind: *kind,
            field,
            how: *how,
            times: count.times,
            why: match how {
                How::Dropped { why } => why,
                How::Cut | How::Changed | How::Moved | How::Invented => "",
            },
            kept_bytes: is_cut.then_some(count.kept),
            of_bytes: is_cut.then_some(count.of),
            lines: count.examples.iter().map(|at| at.line).collect(),
            left_out_lines: &count.lines,
        }
    }
}
