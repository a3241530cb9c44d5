//! The loss report of a conversion: how many events of each kind were kept, and what happened to the others. Counts are
//! complete; examples are a few of each.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::model::{Kind, Span};

/// What happened to an event or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// The target does not have it.
    Dropped {
        /// The reason, if known; empty if the target simply has no place for it.
        why: &'static str,
    },
    /// It is shorter.
    Cut,
    /// The target has it with another value.
    Changed,
    /// The target has it at another position.
    Moved,
    /// The source does not state it; the target requires it.
    Invented,
}

impl LossKind {
    /// The name in reports and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Dropped { .. } => "dropped",
            LossKind::Cut => "cut",
            LossKind::Changed => "changed",
            LossKind::Moved => "moved",
            LossKind::Invented => "invented",
        }
    }

    /// Whether a statement of the source is gone.
    pub fn is_loss(self) -> bool {
        match self {
            LossKind::Dropped { .. } | LossKind::Cut | LossKind::Changed => true,
            LossKind::Moved | LossKind::Invented => false,
        }
    }
}

/// LossKind often something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of times.
    pub times: u64,
    /// For cut texts: the number of bytes kept.
    pub kept: u64,
    /// For cut texts: the number of bytes in the source.
    pub of: u64,
    /// The first few positions in the source.
    pub examples: Vec<Span>,
    /// For excluded events that no other record repeats: their lines in the source, as ranges of the first and last line.
    pub lines: Vec<(u64, u64)>,
}

impl Count {
    /// Adds the line of an excluded record.
    pub(super) fn add_line(&mut self, at: Option<Span>) {
        let Some(line) = at.map(|at| at.line).filter(|line| *line != Span::LINE_UNKNOWN) else { return };
        let count = self.lines.len();
        match self.lines.last_mut() {
            Some((_, last)) if line == *last || line == *last + 1 => *last = line,
            _ if count < RUNS_MAX => self.lines.push((line, line)),
            _ => {}
        }
    }

    /// The first few ranges of lines, as text.
    fn lines_text(&self) -> String {
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

/// The most ranges of lines kept for each entry; the full list of branches is available elsewhere.
const RUNS_MAX: usize = 1_024;

/// The most ranges of lines shown to people.
const RUNS_SHOWN: usize = 6;

/// The field name of an event that moved to another position.
pub(crate) const ORDER: &str = "order";

/// The most examples kept for each entry.
const EXAMPLES_MAX: usize = 3;

/// The most distinct entries: a source may invent any number of field names.
const DISTINCT_MAX: usize = 4096;

/// The loss report of one conversion.
#[derive(Clone, Debug, Default)]
pub struct LossReport {
    /// Events read, by kind.
    pub read: BTreeMap<Kind, u64>,
    /// Events kept, whole or in part, by kind.
    pub kept: BTreeMap<Kind, u64>,
    /// What happened, by kind of event, field and kind of loss. An empty field name means the event itself.
    pub losses: BTreeMap<(Kind, String, LossKind), Count>,
}

/// How the reasons begin for which an event is not written because another record has its content.
const REPEATS: &str = "repeats another record";

impl LossReport {
    /// Adds an occurrence.
    pub fn add(&mut self, kind: Kind, field: &str, how: LossKind, at: Option<Span>) -> &mut Count {
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

    /// Whether a statement of the source is gone.
    pub fn is_lossy(&self) -> bool {
        self.losses.keys().any(|(_, _, how)| how.is_loss())
    }

    /// Whether events are in another order.
    pub fn is_reordered(&self) -> bool {
        self.losses.keys().any(|(_, field, how)| field == ORDER && *how == LossKind::Moved)
    }

    /// One line for each kind of event: what was kept and what was not.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in Kind::ALL {
            let read = self.read.get(&kind).copied().unwrap_or(0);
            let kept = self.kept.get(&kind).copied().unwrap_or(0);
            let (mut events, mut fields) = (Vec::new(), Vec::new());
            for how in ["dropped", "cut", "changed", "moved", "invented"] {
                let remarks = self.remarks(kind, how);
                events.extend(remarks.0);
                fields.extend(remarks.1);
            }
            if read > 0 || !events.is_empty() || !fields.is_empty() {
                let events: String = events.iter().map(|remark| format!(", {remark}")).collect();
                let fields = match fields.is_empty() {
                    true if events.is_empty() => "; whole".to_owned(),
                    true => String::new(),
                    false => format!("; fields: {}", fields.join("; ")),
                };
                lines.push(format!("{:<12} {kept} of {read} kept{events}{fields}", kind.name()));
            }
        }
        lines
    }

    /// One kind of loss: of the events of a kind, and of the fields of those that were kept. It lists fields of the
    /// model by name, and only counts fields that are specific to the source format: there are many, and the full report lists
    /// them.
    fn remarks(&self, kind: Kind, how: &str) -> (Vec<String>, Option<String>) {
        let mut events = Vec::new();
        let mut fields: Vec<String> = Vec::new();
        let (mut extra, mut repeats) = (0, 0);
        for ((of, field, loss), count) in &self.losses {
            if *of == kind && loss.name() == how {
                match (field.as_str(), loss) {
                    ("", LossKind::Dropped { why }) if why.starts_with(REPEATS) => repeats += count.times,
                    ("", LossKind::Dropped { why }) if !why.is_empty() => {
                        events.push(format!("{} left out ({why}{})", count.times, count.lines_text()));
                    }
                    ("", _) => events.push(format!("{} {how}", count.times)),
                    (field, _) if field.starts_with("extra.") => extra += 1,
                    (field, _) => fields.push(format!("{field} ×{}", count.times)),
                }
            }
        }
        if repeats > 0 {
            events.push(format!("{repeats} {} skipped", if repeats == 1 { "repeat" } else { "repeats" }));
        }
        if extra > 0 {
            let plural = if extra == 1 { "" } else { "s" };
            fields.push(format!("{extra} format-specific field{plural}"));
        }
        (events, (!fields.is_empty()).then(|| format!("{how} {}", fields.join(", "))))
    }

    /// The whole report as JSON.
    pub fn to_json(&self) -> String {
        // A map with text as its keys always has a spelling.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for LossReport {
    /// The lines of [`LossReport::summary`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.summary().join("\n"))
    }
}

impl Serialize for LossReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("LossReport", 3)?;
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
    how: LossKind,
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
    fn of(((kind, field, how), count): (&'r (Kind, String, LossKind), &'r Count)) -> Loss<'r> {
        let is_cut = *how == LossKind::Cut;
        Loss {
            kind: *kind,
            field,
            how: *how,
            times: count.times,
            why: match how {
                LossKind::Dropped { why } => why,
                LossKind::Cut | LossKind::Changed | LossKind::Moved | LossKind::Invented => "",
            },
            kept_bytes: is_cut.then_some(count.kept),
            of_bytes: is_cut.then_some(count.of),
            lines: count.examples.iter().map(|at| at.line).collect(),
            left_out_lines: &count.lines,
        }
    }
}
