//! A conversation printed at once, for files, pagers and other programs: a heading, then every event. As JSON it is the wire.

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::replay::{Mode, Range, Within};
use stenograph::wire;
use stenograph_store::follow::{FollowChange, Listener, SWEEP};

use super::origin::{Audience, Judge, Overview, ReplaySource, turned};
use super::view::{self, Narrator};
use super::{Options, nothing};
use crate::error::{CommandError, Status};
use crate::input::Go;
use crate::output::{Colour, Output, harmless_json};

/// Prints it.
pub fn run(
    options: &Options,
    mut origin: ReplaySource,
    overview: Overview,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let name = origin.name();
    let mut printing = Printing {
        manner: if options.json { Manner::Json } else { Manner::View(output.colour()) },
        mode: options.mode(),
        range: options.range(),
        judge: overview.judge,
        narrator: Narrator::default(),
        heading: Some(view::heading(&name, &overview.outline, overview.summary.as_ref())),
        printed: 0,
        go: Go::On,
        output,
        failed: None,
    };
    origin.play(&mut printing)?;
    while let ReplaySource::Live(live) = &mut origin {
        if let Some(error) = printing.failed.take() {
            return Err(error);
        }
        printing.output.flush()?;
        live.signal.wait(SWEEP);
        live.look(&mut printing)?;
    }
    if let Some(error) = printing.failed.take() {
        return Err(error);
    }
    if printing.printed == 0 {
        return Err(nothing(options, &printing.range, &name));
    }
    if let Some(place) = printing.range.missing() {
        let said = format!("there is no {place}; this goes to the end");
        printing.output.say(&said);
    }
    Ok(Status::Done)
}

#[derive(Clone, Copy)]
enum Manner {
    View(Colour),
    Json,
}

struct Printing<'a, 'o> {
    manner: Manner,
    mode: Mode,
    range: Range,
    judge: Judge,
    narrator: Narrator,
    /// What stands above the first event.
    heading: Option<String>,
    printed: u64,
    go: Go,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl Sink for Printing<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let verdict = self.judge.next(event);
        let Some(scene) = self.narrator.scene(number, event, verdict) else { return };
        if within == Within::After {
            self.go = Go::NoFurther;
        }
        if within != Within::Inside || !self.mode.shows(event) || self.failed.is_some() {
            return;
        }
        let text = match self.manner {
            Manner::Json => format!("{}\n", harmless_json(&wire::event_at(event))),
            Manner::View(colour) => {
                let heading = self.heading.take().unwrap_or_default();
                format!("{heading}{}", view::event(self.mode, &scene, event, colour))
            }
        };
        self.printed += 1;
        self.failed = self.output.data().write_all(text.as_bytes()).err().map(CommandError::from);
    }

    /// What is odd about a source is told by steno check.
    fn note(&mut self, _note: Note) {}
}

impl Listener for Printing<'_, '_> {
    fn file_change(&mut self, change: FollowChange) {
        self.output.say(turned(change));
        if change != FollowChange::Gone {
            self.judge.anew();
            self.narrator = Narrator::default();
            self.range = Range::new(None, None);
        }
    }
}

impl Audience for Printing<'_, '_> {
    fn go(&self) -> Go {
        if self.failed.is_some() { Go::NoFurther } else { self.go }
    }
}
