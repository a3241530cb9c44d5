//! Draws the events of one conversation, one after the other. [`Painter`] draws each of them.

use std::collections::VecDeque;
use std::sync::Arc;

use stenograph::model::{Body, Event};
use stenograph::render::{EventView, EventViewer, ViewKind};

use super::painter::{DrawnEvent, Folding, Painter, PlaceKind};
use super::styled::Line;
use crate::output::Colour;

/// How many calls are remembered by their event numbers.
const OPEN_CALLS_MAX: usize = 256;

/// Follows a conversation, and knows the place of each event in it.
#[derive(Default)]
pub struct PlaceTracker {
    viewer: EventViewer,
    /// The event numbers of the last calls.
    call_events: VecDeque<(u64, u64)>,
}

/// Whether readers see an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Shown,
    /// Only if the reader asks for everything.
    Hidden,
}

impl PlaceTracker {
    /// The place of the next event.
    pub fn next(&mut self, number: Option<u64>, event: &Event<'_>) -> (DrawnEvent, Visibility) {
        let context = self.viewer.context(event);
        let (mut called_at, mut visibility) = (None, Visibility::Shown);
        let kind = match &event.body {
            // The kind of a call depends on its input, which is read only to draw it.
            Body::ToolCall { .. } => {
                self.call_events.extend(context.call.zip(number));
                if self.call_events.len() > OPEN_CALLS_MAX {
                    self.call_events.pop_front();
                }
                PlaceKind::Call
            }
            _ => {
                let (kind, speaker) = ViewKind::of(event, &context);
                if kind.is_hidden() {
                    visibility = Visibility::Hidden;
                }
                match (kind, speaker) {
                    (ViewKind::Result(_), _) => {
                        let call = self.call_events.iter().find(|(call, _)| Some(*call) == context.call);
                        called_at = call.map(|(_, number)| *number);
                        PlaceKind::Result
                    }
                    (ViewKind::Compaction, _) => PlaceKind::Compaction,
                    (ViewKind::User | ViewKind::Agent, Some(name)) => PlaceKind::Speaker(kind, Arc::from(name)),
                    _ => PlaceKind::Other,
                }
            }
        };
        let time_ms = event.time.as_ref().and_then(stenograph::time::Time::to_millis);
        (DrawnEvent { number, kind, time_ms, called_at, context }, visibility)
    }
}

/// How events are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawForm {
    /// Each with its content.
    Content,
    /// Each on one line.
    Summary,
}

/// Draws the events of one conversation.
pub struct Drawer {
    tracker: PlaceTracker,
    painter: Painter,
    form: DrawForm,
    /// Whether bookkeeping and injected text are drawn.
    all: bool,
    /// What was drawn last.
    before: Option<DrawnEvent>,
    /// Whether the next event is marked: the reader asked for it.
    is_marked: bool,
}

impl Drawer {
    pub fn new(colour: Colour, width: usize, folding: Folding, all: bool) -> Drawer {
        Drawer {
            tracker: PlaceTracker::default(),
            painter: Painter::new(colour, width, folding),
            form: DrawForm::Content,
            all,
            before: None,
            is_marked: false,
        }
    }

    /// Draws bookkeeping and injected text too.
    pub fn draw_all(&mut self) {
        self.all = true;
    }

    pub fn set_form(&mut self, form: DrawForm) {
        self.form = form;
    }

    /// Marks the next event, or not. A marked event is drawn whole: the reader asked for it.
    pub fn mark(&mut self, is_marked: bool) {
        self.is_marked = is_marked;
    }

    /// Forgets the conversation, for another one.
    pub fn restart(&mut self) {
        (self.tracker, self.before) = (PlaceTracker::default(), None);
    }

    /// Adds an event that is not drawn, so that later events know their calls.
    pub fn skip(&mut self, event: &Event<'_>) {
        self.tracker.next(None, event);
    }

    /// Whether readers see an event, wherever it is in the conversation.
    pub fn shows(&self, event: &Event<'_>) -> bool {
        let (place, visibility) = PlaceTracker::default().next(None, event);
        (visibility == Visibility::Shown || self.all) && !EventView::of(event, &place.context).is_blank()
    }

    /// The text of the next event, with a newline at its end; `None` for a hidden event.
    pub fn event(&mut self, number: Option<u64>, event: &Event<'_>) -> Option<String> {
        let colour = self.painter.colour;
        Some(self.lines(number, event)?.iter().map(|line| line.drawn(colour) + "\n").collect())
    }

    /// The lines of the next event; `None` for a hidden event.
    pub fn lines(&mut self, number: Option<u64>, event: &Event<'_>) -> Option<Vec<Line>> {
        let (mut place, visibility) = self.tracker.next(number, event);
        if visibility == Visibility::Hidden && !self.all {
            return None;
        }
        let view = EventView::of(event, &place.context);
        if view.is_blank() {
            return None;
        }
        let before = self.before.as_ref();
        let lines = match self.form {
            DrawForm::Content => {
                let (mark, folding) = (if self.is_marked { ">" } else { "" }, self.painter.folding);
                self.painter.folding = if self.is_marked { Folding::Whole } else { folding };
                let lines = self.painter.event(event, &view, &place, before, mark);
                self.painter.folding = folding;
                lines
            }
            DrawForm::Summary => self.painter.summary(event, &view, &place, before),
        };
        // An event without a time happened on the day of the event before it.
        place.time_ms = place.time_ms.or(before.and_then(|before| before.time_ms));
        self.before = Some(place);
        Some(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::styled::text_width;
    use stenograph::model::{Content, Input, Role};

    fn drawn(events: &[Event<'_>], width: usize) -> String {
        let mut drawer = Drawer::new(Colour::Plain, width, Folding::Folded, false);
        let texts = events.iter().enumerate().filter_map(|(at, event)| drawer.event(Some(at as u64 + 1), event));
        texts.collect()
    }

    fn message(role: Role, text: &str) -> Event<'_> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call<'a>(id: &'a str, tool: &'a str, input: &'a str) -> Event<'a> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: tool.into(), input: Input::Json(input.into()) })
    }

    fn result<'a>(id: &'a str, text: &'a str, error: Option<bool>) -> Event<'a> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text(text), error })
    }

    #[test]
    fn a_conversation_reads_from_top_to_bottom() {
        let output = "a\nb\nc\nd\ne\nf\ng";
        let events = [
            message(Role::User, "Fix **it**"),
            message(Role::Assistant, "I look."),
            call("call-0001", "Bash", r#"{"command":"cargo test"}"#),
            result("call-0001", output, None),
            call("call-0002", "Edit", r#"{"file_path":"/a.rs","old_string":"x\n","new_string":"y\n"}"#),
            result("call-0002", "error: no such file", Some(true)),
            message(Role::Assistant, "Done."),
        ];
        let expected = "    1  ❯ You
       Fix **it**

    2  ● Agent
       I look.

    3  $ cargo test
    4  └ 7 lines
         a
         b
         c
         d
         … 3 more lines

    5  Edit /a.rs  +1 -1
         -x
         +y
    6  └ ✗ failed, 1 line
         error: no such file

    7  ● Agent
       Done.
";
        assert_eq!(drawn(&events, 60), expected);
    }

    #[test]
    fn a_speaker_who_speaks_on_is_named_again() {
        let events = [message(Role::Assistant, "One."), message(Role::Assistant, "Two.")];
        assert_eq!(drawn(&events, 60), "    1  ● Agent\n       One.\n\n    2  ● Agent\n       Two.\n");
    }

    #[test]
    fn a_compaction_in_two_records_has_one_rule() {
        let compaction =
            |summary: Option<&'static str>| Event::new(Body::Compaction { summary: summary.map(Content::text) });
        let text = drawn(&[compaction(None), compaction(Some("We fixed it.")), message(Role::User, "Go on.")], 60);
        assert_eq!(text.matches("compaction").count(), 1, "{text}");
        assert!(text.contains("    2  We fixed it.\n"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "word ".repeat(100) + &"漢".repeat(100) + &"x".repeat(300);
        let input = format!("{{\"command\":{}}}", stenograph::text::quote(&long));
        let events = [
            message(Role::User, &long),
            call("call-0001", "Bash", &input),
            result("call-0001", &long, Some(true)),
            Event::new(Body::Compaction { summary: Some(Content::text(long.as_str())) }),
            Event::new(Body::Failure { name: Some(long.as_str().into()), content: None }),
        ];
        for width in [40, 80, 120] {
            for line in drawn(&events, width).lines() {
                assert!(text_width(line) <= width, "{width}: {line}");
            }
        }
    }
}
