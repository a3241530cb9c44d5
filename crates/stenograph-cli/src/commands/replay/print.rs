//! Prints a conversation at once, for files, pagers and other programs: a header, then every event. As JSON it is the wire
//! format.

use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::replay::{Mode, Range, Within};
use stenograph::wire;
use stenograph_store::follow::{FollowChange, Listener, SWEEP};

use super::source::{EventFilter, EventReceiver, FilterDecision, ReplayOverview, ReplaySource, describe_change};
use super::{Options, is_played, nothing_to_play};
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, harmless_json};
use crate::terminal::{self, Drawer, Header, Visibility};

pub fn run(
    options: &Options,
    mut source: ReplaySource,
    overview: ReplayOverview,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let name = source.name();
    let mut printer = ReplayPrinter {
        form: if options.json { PrintForm::Json } else { PrintForm::View },
        drawer: options.drawer(output.colour()),
        mode: options.mode(),
        all: options.draw.all(),
        range: options.range(),
        filter: overview.filter,
        header: Some(overview.header),
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
    View,
    Json,
}

struct ReplayPrinter<'a, 'o> {
    form: PrintForm,
    drawer: Drawer,
    mode: Mode,
    all: bool,
    range: Range,
    filter: EventFilter,
    /// The header above the first event.
    header: Option<Header>,
    printed: u64,
    flow: Flow,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl ReplayPrinter<'_, '_> {
    /// The header, the first time.
    fn header(&mut self) -> String {
        let colour = self.output.colour();
        let lines = self.header.take().map(|header| header.lines(terminal::width())).unwrap_or_default();
        lines.iter().map(|line| line.drawn(colour) + "\n").collect()
    }
}

impl Sink for ReplayPrinter<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let decision = self.filter.next(event);
        if within == Within::After && decision != FilterDecision::LeftOut {
            self.flow = Flow::Stop;
        }
        // The drawer leaves out hidden events itself.
        let is_wanted = decision != FilterDecision::LeftOut
            && within == Within::Inside
            && is_played(self.mode, self.all, Visibility::Shown, event);
        if !is_wanted || self.failed.is_some() {
            return self.drawer.skip(event);
        }
        let text = match self.form {
            PrintForm::Json => format!("{}\n", harmless_json(&wire::event_at(event))),
            PrintForm::View => match self.drawer.event(Some(number), event) {
                Some(text) => format!("{}{text}", self.header()),
                None => return,
            },
        };
        self.printed += 1;
        self.failed = self.output.data().write_all(text.as_bytes()).err().map(CommandError::from);
    }
}

impl Listener for ReplayPrinter<'_, '_> {
    fn file_change(&mut self, change: FollowChange) {
        self.output.say(describe_change(change));
        if change != FollowChange::Gone {
            self.filter.restart();
            self.drawer.restart();
            self.range = Range::new(None, None);
        }
    }
}

impl EventReceiver for ReplayPrinter<'_, '_> {
    fn flow(&self) -> Flow {
        if self.failed.is_some() { Flow::Stop } else { self.flow }
    }
}
