//! Measures every conversion: what of one source per format survives in every other format. The result is text in Markdown
//! that is kept in golden files, so that a change in any reader or writer shows what it costs. It takes sources in memory and
//! must not look for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::convert::{Carry, convert};
use crate::format::Format;
use crate::loss::{Count, LossKind, LossReport};
use crate::model::Kind;

/// A source to convert to every format.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its format.
    pub format: &'static dyn Format,
    /// The name of its file.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// One conversion and its losses.
struct Pair {
    to: &'static str,
    losses: LossReport,
}

/// The kinds of loss, the most important first, with their marks in the matrix.
const LOSS_KINDS: [(&str, &str); 5] =
    [("dropped", "−"), ("cut", "✂"), ("changed", "≠"), ("moved", "→"), ("invented", "+")];

/// The fixture that represents a format: the one named `demo…`, else the first by name.
pub fn sample_name(names: &[String]) -> Option<&String> {
    names.iter().filter(|name| name.starts_with("demo")).min().or_else(|| names.iter().min())
}

/// The losses of every conversion of every sample.
pub struct Conversions<'s> {
    rows: Vec<(&'s Sample, Vec<Result<Pair, String>>)>,
    targets: Vec<&'static dyn Format>,
}

impl std::fmt::Debug for Conversions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Conversions").field("samples", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<'s> Conversions<'s> {
    /// Measures them. Reading from memory cannot fail; a refused conversion states its reason.
    pub fn measure(samples: &'s [Sample], targets: &[&'static dyn Format]) -> Conversions<'s> {
        let of = |sample: &'s Sample| {
            let others = targets.iter().filter(|to| to.info().name != sample.format.info().name);
            (sample, others.map(|to| measure(sample, *to)).collect())
        };
        Conversions { rows: samples.iter().map(of).collect(), targets: targets.to_vec() }
    }

    /// The page with the matrix, as Markdown.
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        matrix(&self.rows, &self.targets, &mut page);
        page
    }

    /// What conversions from one format lose, as Markdown; empty if there is no sample of it.
    pub fn of(&self, format: &dyn Format) -> String {
        let mut text = String::new();
        if let Some((sample, pairs)) =
            self.rows.iter().find(|(sample, _)| sample.format.info().name == format.info().name)
        {
            section(sample, pairs, &mut text);
        }
        text
    }
}

const HEAD: &str = "\
<!-- Written by `cargo xtask gen` and checked by the tests: do not edit. -->

# What every conversion loses

These losses are measured: the demo fixture of each format is read, written in every other format, and read back. If the
target can embed a source, `--carry` loses nothing.

A row is the source format, a column the target format. A cell has the number of events that were kept and of those that
were read, and marks for fields: `−` dropped, `✂` cut, `≠` changed, `→` moved to another place, `+` invented because the
target requires them. A source format links to its page, which lists every field and all targets, also the logs that have no
column here.

";

fn measure(sample: &Sample, to: &'static dyn Format) -> Result<Pair, String> {
    let mut out = Vec::new();
    match convert(sample.format, &mut sample.bytes.as_slice(), to, &mut out, Carry::Omit) {
        Ok(outcome) => Ok(Pair { to: to.info().name, losses: outcome.losses }),
        Err(error) => Err(format!("`{}`: {error}", to.info().name)),
    }
}

fn matrix(rows: &[(&Sample, Vec<Result<Pair, String>>)], targets: &[&'static dyn Format], page: &mut String) {
    let columns = targets.iter().filter(|to| !to.info().traits.log);
    let names: Vec<&str> = columns.map(|to| to.info().name).collect();
    let _ = writeln!(page, "| from \\ to | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    for (sample, pairs) in rows {
        let own = sample.format.info().name;
        let cells: Vec<String> = names
            .iter()
            .map(|name| match pairs.iter().find(|pair| pair.as_ref().is_ok_and(|pair| pair.to == *name)) {
                Some(Ok(pair)) => cell(&pair.losses),
                Some(Err(_)) | None if *name == own => "copied".to_owned(),
                Some(Err(_)) | None => "refused".to_owned(),
            })
            .collect();
        let _ = writeln!(page, "| [{own}](formats/{own}.md) | {} |", cells.join(" | "));
    }
}

fn cell(losses: &LossReport) -> String {
    let sum = |counts: &BTreeMap<Kind, u64>| counts.values().sum::<u64>();
    let mut marks = String::new();
    for (loss, mark) in LOSS_KINDS {
        // The numbers already show that whole events are gone.
        let shows = |((_, field, how), _): (&(Kind, String, LossKind), &Count)| {
            how.name() == loss && !(field.is_empty() && loss == "dropped")
        };
        if losses.losses.iter().any(shows) {
            marks.push_str(mark);
        }
    }
    let (kept, read) = (sum(&losses.kept), sum(&losses.read));
    let counts = if kept == read { format!("**{kept}/{read}**") } else { format!("{kept}/{read}") };
    if marks.is_empty() { counts } else { format!("{counts} {marks}") }
}

fn section(sample: &Sample, pairs: &[Result<Pair, String>], page: &mut String) {
    let _ = writeln!(page, "Measured with the fixture `{}`.", sample.name);
    for pair in pairs {
        match pair {
            Err(refusal) => {
                let _ = writeln!(page, "\n**to {refusal}**");
            }
            Ok(pair) if pair.losses.losses.is_empty() => {
                let _ = writeln!(page, "\n**to `{}`**: nothing is lost.", pair.to);
            }
            Ok(pair) => {
                let _ = writeln!(page, "\n**to `{}`**\n", pair.to);
                for kind in Kind::ALL {
                    kind_line(kind, &pair.losses, page);
                }
            }
        }
    }
}

/// All that happened to the events of one kind, in one line.
fn kind_line(kind: Kind, losses: &LossReport, page: &mut String) {
    let count = |counts: &BTreeMap<Kind, u64>| counts.get(&kind).copied().unwrap_or(0);
    let mut remarks: Vec<String> = Vec::new();
    for (loss, _) in LOSS_KINDS {
        let of_loss = losses.losses.iter().filter(|((of, _, how), _)| *of == kind && how.name() == loss);
        let (events, fields): (Vec<_>, Vec<_>) = of_loss.partition(|((_, field, _), _)| field.is_empty());
        for ((_, _, how), count) in events {
            remarks.push(format!("{} {loss}{}", count.times, reason(*how)));
        }
        if !fields.is_empty() {
            let fields: Vec<String> =
                fields.into_iter().map(|((_, name, how), count)| field(name, *how, count)).collect();
            remarks.push(format!("{loss} {}", fields.join(", ")));
        }
    }
    if !remarks.is_empty() {
        let _ = writeln!(
            page,
            "- {}, {} of {} kept: {}",
            kind.name(),
            count(&losses.kept),
            count(&losses.read),
            remarks.join("; ")
        );
    }
}

fn field(name: &str, how: LossKind, count: &Count) -> String {
    let times = if count.times == 1 { String::new() } else { format!(" ×{}", count.times) };
    let bytes = match how {
        LossKind::Cut => format!(" ({} of {} bytes)", count.kept, count.of),
        LossKind::Dropped { .. } | LossKind::Changed | LossKind::Moved | LossKind::Invented => String::new(),
    };
    format!("`{name}`{times}{bytes}{}", reason(how))
}

fn reason(how: LossKind) -> String {
    match how {
        LossKind::Dropped { why } if !why.is_empty() => format!(" ({why})"),
        LossKind::Dropped { .. } | LossKind::Cut | LossKind::Changed | LossKind::Moved | LossKind::Invented => {
            String::new()
        }
    }
}
