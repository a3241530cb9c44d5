//! Replay of a conversation: which events are shown, when each is due, and how to move in it. Pure functions over events
//! and durations: nothing here reads a clock, waits or prints, and no text is kept.

mod player;
mod range;
mod timeline;

pub use player::{Changed, Command, PlayState, ReplayClock, Speed};
pub use range::{EventPosition, Range, Within};
pub use timeline::{Beat, Begins, Timeline, Wait};

use crate::model::{Body, Event, Role};

/// Which part of a conversation is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All messages, calls and results.
    #[default]
    Full,
    /// The same, with one line per event.
    Summary,
    /// The assistant's messages.
    Assistant,
    /// Calls and results.
    Tools,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 4] = [Mode::Full, Mode::Summary, Mode::Assistant, Mode::Tools];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::Summary => "summary",
            Mode::Assistant => "assistant",
            Mode::Tools => "tools",
        }
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether an event of the spine is played. Facts, unknown records and empty messages are not part of a conversation.
    pub fn shows(self, event: &Event<'_>) -> bool {
        let (talk, assistant, tools) = match &event.body {
            Body::Message { role, content } => (!content.is_empty(), *role == Role::Assistant, false),
            Body::Thinking { content } => (!content.is_empty(), false, false),
            Body::ToolCall { .. } | Body::ToolResult { .. } => (true, false, true),
            Body::Compaction { .. } | Body::Failure { .. } => (true, false, false),
            Body::Stop { reason, success, .. } => (reason.is_some() || success.is_some(), false, false),
            Body::Fact { .. } | Body::Other { .. } => (false, false, false),
        };
        match self {
            Mode::Full | Mode::Summary => talk,
            Mode::Assistant => talk && assistant,
            Mode::Tools => tools,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Content;

    #[test]
    fn a_mode_shows_what_its_name_says() {
        let said = |role, text: &'static str| Event::new(Body::Message { role, content: Content::text(text) });
        let result = Body::ToolResult { call: None, name: None, content: Content::text(""), error: None };
        let events = [
            said(Role::User, "a"),
            said(Role::Assistant, "b"),
            said(Role::Assistant, ""),
            Event::new(result),
            Event::new(Body::Stop { reason: None, success: None, content: None }),
            Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text("t")) }),
        ];
        let shown = |mode: Mode| events.iter().map(|event| mode.shows(event)).collect::<Vec<_>>();
        assert_eq!(shown(Mode::Full), [true, true, false, true, false, false]);
        assert_eq!(shown(Mode::Summary), shown(Mode::Full));
        assert_eq!(shown(Mode::Assistant), [false, true, false, false, false, false]);
        assert_eq!(shown(Mode::Tools), [false, false, false, true, false, false]);
    }

    #[test]
    fn modes_are_known_by_their_names() {
        assert!(Mode::ALL.into_iter().all(|mode| Mode::named(mode.name()) == Some(mode)));
        assert_eq!(Mode::named("loud"), None);
    }
}
