//! The loss report of a conversion: how many events of each kind were kept, and what happened to the others. Counts are
//! complete; examples are a few of each.

use std::collections::BTreeMap;

use crate::model::{Kind, Span};
use crate::text::quote;

/// What happened to an event or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// It is not there any more.
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

    /// Whether a statement of the source is gone.
    pub fn is_loss(self) -> bool {
        match self {
            How::Dropped { .. } | How::Cut | How::Changed => true,
            How::Moved | How::Invented => false,
        }
    }
}

/// How often something happened.
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
pub struct Report {
    /// Events read, by kind.
    pub read: BTreeMap<Kind, u64>,
    /// Events kept, whole or in part, by kind.
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

    /// Whether a statement of the source is gone.
    pub fn is_lossy(&self) -> bool {
        self.losses.keys().any(|(_, _, how)| how.is_loss())
    }

    /// Whether events are in another order.
    pub fn is_reordered(&self) -> bool {
        self.losses.keys().any(|(_, field, how)| field == ORDER && *how == How::Moved)
    }

    /// One line for each kind of event: what was kept and what was not.
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

    /// What happened in one manner to the events of a kind. It lists fields of the model by name, and only counts fields that
    /// are specific to the source format: there are many, and the full report lists them.
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
        let counts = |counts: &BTreeMap<Kind, u64>| {
            let fields: Vec<String> = counts.iter().map(|(kind, n)| format!("{}:{n}", quote(kind.name()))).collect();
            format!("{{{}}}", fields.join(","))
        };
        let losses: Vec<String> = self.losses.iter().map(|(key, count)| loss_json(key, count)).collect();
        format!("{{\"read\":{},\"kept\":{},\"losses\":[{}]}}", counts(&self.read), counts(&self.kept), losses.join(","))
    }
}

fn loss_json((kind, field, how): &(Kind, String, How), count: &Count) -> String {
    let mut json = format!(
        "{{\"kind\":{},\"field\":{},\"how\":{},\"times\":{}",
        quote(kind.name()),
        quote(field),
        quote(how.name()),
        count.times
    );
    match how {
        How::Dropped { why } if !why.is_empty() => json.push_str(&format!(",\"why\":{}", quote(why))),
        How::Cut => json.push_str(&format!(",\"kept_bytes\":{},\"of_bytes\":{}", count.kept, count.of)),
        How::Dropped { .. } | How::Changed | How::Moved | How::Invented => {}
    }
    let lines: Vec<String> = count.examples.iter().map(|at| at.line.to_string()).collect();
    if !lines.is_empty() {
        json.push_str(&format!(",\"lines\":[{}]", lines.join(",")));
    }
    if !count.lines.is_empty() {
        let runs: Vec<String> = count.lines.iter().map(|(first, last)| format!("[{first},{last}]")).collect();
        json.push_str(&format!(",\"left_out_lines\":[{}]", runs.join(",")));
    }
    json.push('}');
    json
}
