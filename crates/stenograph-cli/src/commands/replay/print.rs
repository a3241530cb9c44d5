//! Prints a conversation at once, for files, pagers and other programs: a heading, then every event. As JSON it is the wire
//! format.

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::replay::{Mode, Range, Within};
use stenograph::wire;
use stenograph_store::follow::{FollowChange, Listener, SWEEP};

use super::source::{EventFilter, EventReceiver, ReplayOverview, ReplaySource, describe_change};
use super::view::{self, FactTracker};
use super::{Options, nothing_to_play};
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Colour, Output, harmless_json};

pub fn run(
    options: &Options,
    mut source: ReplaySource,
    overview: ReplayOverview,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let name = source.name();
    let mut printer = ReplayPrinter {
        form: if options.json { PrintForm::Json } else { PrintForm::View(output.colour()) },
        mode: options.mode(),
        range: options.range(),
        filter: overview.filter,
        fact_tracker: FactTracker::default(),
        heading: Some(view::heading(&name, &overview.outline, overview.summary.as_ref())),
        printed: 0,
        flow: Flow::Continue,
        output,
        failed: None,
    };
    source.play(&mut printer)?;
    while let ReplaySource::Live(live) = &mut source {
        if let Some(error) = printer.failed.take() {
            return Err(error);
        }
        printer.output.flush()?;
        live.signal.wait(SWEEP);
        live.look(&mut printer)?;
    }
    if let Some(error) = printer.failed.take() {
        return Err(error);
    }
    if printer.printed == 0 {
        return Err(nothing_to_play(options, &printer.range, &name));
    }
    if let Some(place) = printer.range.missing() {
        let message = format!("no {place}; played to the end");
        printer.output.say(&message);
    }
    Ok(ExitStatus::Done)
}

#[derive(Clone, Copy)]
enum PrintForm {
    View(Colour),
    Json,
}

struct ReplayPrinter<'a, 'o> {
    form: PrintForm,
    mode: Mode,
    range: Range,
    filter: EventFilter,
    fact_tracker: FactTracker,
    /// The heading above the first event.
    heading: Option<String>,
    printed: u64,
    flow: Flow,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl Sink for ReplayPrinter<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let decision = self.filter.next(event);
        let Some(event_facts) = self.fact_tracker.event_facts(number, event, decision) else { return };
        if within == Within::After {
            self.flow = Flow::Stop;
        }
        if within != Within::Inside || !self.mode.shows(event) || self.failed.is_some() {
            return;
        }
        let text = match self.form {
            PrintForm::Json => format!("{}\n", harmless_json(&wire::event_at(event))),
            PrintForm::View(colour) => {
                let heading = self.heading.take().unwrap_or_default();
                format!("{heading}{}", view::event(self.mode, &event_facts, event, colour))
            }
        };
        self.printed += 1;
        self.failed = self.output.data().write_all(text.as_bytes()).err().map(CommandError::from);
    }

    /// `steno check` reports notes.
    fn note(&mut self, _note: Note) {}
}

impl Listener for ReplayPrinter<'_, '_> {
    fn file_change(&mut self, change: FollowChange) {
        self.output.say(describe_change(change));
        if change != FollowChange::Gone {
            self.filter.restart();
            self.fact_tracker = FactTracker::default();
            self.range = Range::new(None, None);
        }
    }
}

impl EventReceiver for ReplayPrinter<'_, '_> {
    fn flow(&self) -> Flow {
        if self.failed.is_some() { Flow::Stop } else { self.flow }
    }
}
