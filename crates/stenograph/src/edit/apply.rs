//! Carries out a plan: replaces the changed records in a copy of the source, or if that fails, writes the whole source again from its
//! events. Reads the result back, compares it with the plan, and reports every difference. All of this takes several passes over the
//! source, so that neither the source nor the result is in memory.

use std::io;
use std::ops::Range;

use super::change::Lookup;
use super::gaps::{Gap, each_between, gaps};
use super::original::{EditSource, Rewritable};
use super::read_back::read_back;
use super::splice::splice;
use super::step::Steps;
use super::{Fate, Plan, Sketches, consequences};
use crate::loss::LossReport;
use crate::model::{Event, Note, Outline};
use crate::write::{OutputPiece, Writing};

/// The outcome of an edit.
#[derive(Debug)]
pub struct Edited {
    /// How the result was made.
    pub method: EditMethod,
    /// Differences between the plan and the result: empty, unless the format cannot express the plan.
    pub differences: LossReport,
    /// Notes about the result that do not apply to the source; if there are very many, some of them.
    pub notes: Vec<Note>,
    /// The number of events that changed only as a consequence of others: they restate an event, or follow a removed one.
    pub also_changed: u64,
    /// Fields that still describe the whole session although events were removed.
    pub untouched_totals: Vec<&'static str>,
    /// The number of events of the result.
    pub count: u64,
}

impl Edited {
    /// Whether the result is exactly as planned.
    pub fn is_exact(&self) -> bool {
        self.differences.losses.is_empty() && self.notes.is_empty()
    }

    /// A measure of the differences between plan and result.
    fn loss(&self) -> u64 {
        let lost = self.differences.losses.iter().filter(|((_, _, how), _)| how.is_loss());
        lost.map(|(_, count)| count.times).sum::<u64>() + self.notes.len() as u64
    }
}

/// How an edited source was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditMethod {
    /// The plan is empty: the result is a copy of the source.
    Copied,
    /// Changed records were replaced, and everything else copied byte for byte.
    Spliced,
    /// All records were written again: the format has no records that can be replaced one by one.
    Rewritten,
}

impl EditMethod {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            EditMethod::Copied => "copied",
            EditMethod::Spliced => "spliced",
            EditMethod::Rewritten => "rewritten",
        }
    }
}

/// A plan with everything that is needed to carry it out.
pub(super) struct PreparedPlan<'a> {
    pub(super) sketches: &'a Sketches,
    plan: &'a Plan,
    /// The plan with all its consequences.
    pub(super) complete: Plan,
    lookup: Lookup,
    /// Removed stretches that do not have to be read.
    pub(super) gaps: Vec<Gap>,
}

impl PreparedPlan<'_> {
    /// Starts at the first event.
    pub(super) fn steps(&self) -> Steps<'_> {
        Steps::new(self.sketches, self.plan, &self.complete, &self.lookup)
    }
}

/// Carries out a plan and writes the result to `out`.
pub fn carry_out(source: &mut EditSource<'_>, plan: &Plan, out: &mut dyn Rewritable) -> io::Result<Edited> {
    let sketches = std::mem::take(&mut source.sketches);
    let edited = carry_out_on(source, &sketches, plan, out);
    source.sketches = sketches;
    edited
}

fn carry_out_on(
    source: &mut EditSource<'_>,
    sketches: &Sketches,
    plan: &Plan,
    out: &mut dyn Rewritable,
) -> io::Result<Edited> {
    if plan.is_empty() {
        io::copy(&mut *source.source.open()?, out)?;
        let (notes, untouched_totals, count) = (Vec::new(), Vec::new(), sketches.len() as u64);
        return Ok(Edited {
            method: EditMethod::Copied,
            differences: LossReport::default(),
            notes,
            also_changed: 0,
            untouched_totals,
            count,
        });
    }
    let complete = consequences::add(sketches, plan);
    let mut lookup = Lookup::wanted(complete.changes.values());
    if !lookup.is_empty() {
        let unwanted = gaps(source.format, sketches, |numbers| !lookup.wants(numbers));
        each_between(source.format, &mut *source.source.open()?, &unwanted, &mut |number, event| {
            lookup.add(number, event, complete.changes.get(&number));
        })?;
    }
    let is_removed = |numbers: &Range<usize>| {
        numbers.clone().all(|number| complete.fate(number) == Fate::Removed) && !complete.inserts_into(numbers)
    };
    // The writer continues an inserted record from the record before it, which therefore has to be read.
    let gaps = if complete.insertions().is_empty() { gaps(source.format, sketches, is_removed) } else { Vec::new() };
    let prepared = PreparedPlan { sketches, plan, complete, lookup, gaps };
    let spliced = match splice(source, &prepared, out)? {
        true => Some(read_back(source, &prepared, out, EditMethod::Spliced)?),
        false => None,
    };
    let mut best = match spliced {
        Some(spliced) if spliced.is_exact() => spliced,
        spliced => {
            out.restart()?;
            rewrite(source, &prepared, out)?;
            let rewritten = read_back(source, &prepared, out, EditMethod::Rewritten)?;
            match spliced {
                // If neither is exact, splicing is better unless it loses more: it copies the other records.
                Some(spliced) if spliced.loss() <= rewritten.loss() => {
                    out.restart()?;
                    splice(source, &prepared, out)?;
                    spliced
                }
                _ => rewritten,
            }
        }
    };
    if !(0..sketches.len()).any(|number| prepared.complete.fate(number) == Fate::Removed) {
        best.untouched_totals = Vec::new();
    }
    Ok(best)
}

/// Writes the whole result with the writer of the format.
fn rewrite(source: &mut EditSource<'_>, prepared: &PreparedPlan<'_>, out: &mut dyn Rewritable) -> io::Result<()> {
    let format = source.format;
    let mut outline = Outline::new(format.info().name);
    each_result(source, prepared, &mut |event| outline.add(event))?;
    let mut writing = Writing::new(format, &outline);
    let mut failed = Ok(());
    each_result(source, prepared, &mut |event| {
        let pieces = writing.event(event);
        if failed.is_ok() {
            failed = write(pieces, out);
        }
    })?;
    failed?;
    write(writing.finish(), out)
}

fn write(pieces: Vec<OutputPiece>, out: &mut dyn Rewritable) -> io::Result<()> {
    for piece in pieces {
        let (OutputPiece::Record(piece) | OutputPiece::Glue(piece)) = piece;
        out.write_all(&piece)?;
    }
    Ok(())
}

/// Calls `each` with every event of the result.
fn each_result(
    source: &mut EditSource<'_>,
    prepared: &PreparedPlan<'_>,
    each: &mut dyn FnMut(&Event<'_>),
) -> io::Result<()> {
    let mut steps = prepared.steps();
    source.each(&mut |event| steps.event(event, &mut |step| step.each_result(each)))?;
    steps.end(&mut |step| step.each_result(each));
    Ok(())
}
