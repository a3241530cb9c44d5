//! Carries out a plan: runs of the source are replaced where that does it, else the whole source is written again through events.
//! The result is read back and compared with the plan; what differs is reported, never ignored. Everything is done in passes over
//! the source, so that neither it nor the result is held.

use std::io;
use std::ops::Range;

use super::change::Lookup;
use super::gaps::{Gap, each_between, gaps};
use super::original::{EditSource, Rewritable};
use super::read_back::read_back;
use super::splice::splice;
use super::step::Steps;
use super::{Fate, Plan, Sketches, echo};
use crate::loss::LossReport;
use crate::model::{Event, Note, Outline};
use crate::write::{OutputPiece, Writing};

/// What came of an edit.
#[derive(Debug)]
pub struct Edited {
    /// How the result was made.
    pub way: Way,
    /// What is not as it was planned: empty, unless the format cannot say it.
    pub differs: LossReport,
    /// Remarks about the result that could not be made about the source; of very many, some.
    pub notes: Vec<Note>,
    /// How many records were edited only because they say again what another one says, or hang on one that is gone.
    pub followed: u64,
    /// Fields that still tell of the whole session, though something of it went.
    pub untouched_totals: Vec<&'static str>,
    /// How many events the result has.
    pub count: u64,
}

impl Edited {
    /// Whether exactly what was planned has changed.
    pub fn is_exact(&self) -> bool {
        self.differs.losses.is_empty() && self.notes.is_empty()
    }

    fn weight(&self) -> u64 {
        let lost = self.differs.losses.iter().filter(|((_, _, how), _)| how.is_loss());
        lost.map(|(_, count)| count.times).sum::<u64>() + self.notes.len() as u64
    }
}

/// How an edited source was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing was planned: it is the source itself.
    Copied,
    /// Runs of the source were replaced, and everything else copied byte for byte.
    Spliced,
    /// All of it was written again: the format has no records that could be replaced one by one.
    Rewritten,
}

/// A plan with all that carrying it out needs.
pub(super) struct Work<'a> {
    pub(super) sketches: &'a Sketches,
    plan: &'a Plan,
    /// The plan with everything that follows from it.
    pub(super) whole: Plan,
    lookup: Lookup,
    /// What goes and does not have to be read.
    pub(super) gaps: Vec<Gap>,
}

impl Work<'_> {
    /// Begins to carry out the plan once more.
    pub(super) fn steps(&self) -> Steps<'_> {
        Steps::new(self.sketches, self.plan, &self.whole, &self.lookup)
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
            way: Way::Copied,
            differs: LossReport::default(),
            notes,
            followed: 0,
            untouched_totals,
            count,
        });
    }
    let whole = echo::follow(sketches, plan);
    let mut lookup = Lookup::wanted(whole.changes.values());
    if !lookup.is_empty() {
        let unwanted = gaps(source.format, sketches, |numbers| !lookup.wants(numbers));
        each_between(source.format, &mut *source.source.open()?, &unwanted, &mut |number, event| {
            lookup.add(number, event, whole.changes.get(&number));
        })?;
    }
    let gone = |numbers: &Range<usize>| {
        numbers.clone().all(|number| whole.fate(number) == Fate::Goes) && !whole.puts_into(numbers)
    };
    // What is put in goes on from the record before, which has to be seen.
    let gaps = if whole.put_in().is_empty() { gaps(source.format, sketches, gone) } else { Vec::new() };
    let work = Work { sketches, plan, whole, lookup, gaps };
    let spliced = match splice(source, &work, out)? {
        true => Some(read_back(source, &work, out, Way::Spliced)?),
        false => None,
    };
    let mut best = match spliced {
        Some(spliced) if spliced.is_exact() => spliced,
        spliced => {
            out.restart()?;
            rewrite(source, &work, out)?;
            let rewritten = read_back(source, &work, out, Way::Rewritten)?;
            match spliced {
                // Where neither is exact, the one that leaves the source alone has to be worse to be passed over.
                Some(spliced) if spliced.weight() <= rewritten.weight() => {
                    out.restart()?;
                    splice(source, &work, out)?;
                    spliced
                }
                _ => rewritten,
            }
        }
    };
    if !(0..sketches.len()).any(|number| work.whole.fate(number) == Fate::Goes) {
        best.untouched_totals = Vec::new();
    }
    Ok(best)
}

/// Writes all of the result through the format's own writer.
fn rewrite(source: &mut EditSource<'_>, work: &Work<'_>, out: &mut dyn Rewritable) -> io::Result<()> {
    let format = source.format;
    let mut outline = Outline::new(format.info().name);
    each_left(source, work, &mut |event| outline.add(event))?;
    let mut writing = Writing::new(format, &outline);
    let mut failed = Ok(());
    each_left(source, work, &mut |event| {
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

/// Shows each event of the result.
fn each_left(source: &mut EditSource<'_>, work: &Work<'_>, each: &mut dyn FnMut(&Event<'_>)) -> io::Result<()> {
    let mut steps = work.steps();
    source.each(&mut |event| steps.event(event, &mut |step| step.each_left(each)))?;
    steps.end(&mut |step| step.each_left(each));
    Ok(())
}
