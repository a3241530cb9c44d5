//! Which section of a rendered conversation an event belongs to. A user message is a section, and so is everything that an
//! agent says and does until another speaker follows. A heading also names the turn of the session, as
//! [`SessionTurns`](crate::turns::SessionTurns) counts turns.

use crate::model::{Body, Event, Role};
use crate::turns::begins_turn;

/// The speaker of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A speaker with a role.
    Role(Role),
    /// No speaker: the text replaces compacted context.
    Compaction,
}

impl Speaker {
    /// The name of the speaker.
    pub fn name(self) -> &'static str {
        match self {
            Speaker::Role(role) => role.name(),
            Speaker::Compaction => "compaction",
        }
    }
}

/// The section of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSection {
    /// No section: it has no speaker.
    Outside,
    /// The current section.
    Same,
    /// A new section.
    New(Speaker),
}

/// Follows a conversation.
#[derive(Clone, Debug, Default)]
pub struct SpeakerSections {
    count: u64,
    turns: u64,
    open: Option<(Speaker, Option<String>)>,
}

impl SpeakerSections {
    /// The number of the current section, from 1.
    pub fn number(&self) -> u64 {
        self.count
    }

    /// The number of the turn that the current section belongs to. `None` before the first turn and in side conversations.
    pub fn turn(&self) -> Option<u64> {
        let is_main = self.open.as_ref().is_some_and(|(_, thread)| thread.is_none());
        Some(self.turns).filter(|turns| is_main && *turns > 0)
    }

    /// Whether an event never belongs to a section.
    pub fn is_outside(event: &Event<'_>) -> bool {
        matches!(event.body, Body::Fact { .. } | Body::Other { .. })
    }

    /// The section of an event. Give it every event of the conversation, in order.
    pub fn place(&mut self, event: &Event<'_>) -> EventSection {
        self.turns += u64::from(event.thread.is_none() && !event.restates && begins_turn(event));
        let open = self.open.as_ref().filter(|(_, thread)| thread.as_deref() == event.thread.as_deref());
        let (speaker, continues) = match &event.body {
            Body::Fact { .. } | Body::Other { .. } => return EventSection::Outside,
            // A stop or a failure belongs to the section before it, whoever speaks there.
            Body::Failure { .. } | Body::Stop { .. } => {
                (open.map_or(Speaker::Role(Role::Assistant), |(speaker, _)| *speaker), open.is_some())
            }
            Body::Compaction { .. } => (Speaker::Compaction, false),
            Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => {
                let own = Speaker::Role(Role::Assistant);
                (own, open.is_some_and(|(speaker, _)| *speaker == own))
            }
            Body::Message { role, .. } => {
                let own = Speaker::Role(*role);
                // An agent may speak several times in its section. Other speakers have one section per record.
                let is_one = *role == Role::Assistant || event.part.index > 0;
                (own, is_one && open.is_some_and(|(speaker, _)| *speaker == own))
            }
        };
        if continues {
            return EventSection::Same;
        }
        self.count += 1;
        self.open = Some((speaker, event.thread.as_deref().map(str::to_owned)));
        EventSection::New(speaker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Input};

    #[test]
    fn an_agent_has_one_section_until_somebody_else_speaks() {
        let message = |role| Event::new(Body::Message { role, content: Content::text("x") });
        let call = Event::new(Body::ToolCall { call: None, name: "t".into(), input: Input::Json("{}".into()) });
        let fact = Event::new(Body::Fact { fact: "f".into(), content: None });
        let stop = Event::new(Body::Stop { reason: None, success: None, content: None });
        let mut aside = message(Role::User);
        aside.thread = Some("side".into());
        let mut sections = SpeakerSections::default();
        let placed: Vec<(EventSection, u64)> = [
            &fact,
            &message(Role::User),
            &message(Role::User),
            &call,
            &message(Role::Assistant),
            &stop,
            &aside,
            &message(Role::Assistant),
        ]
        .map(|event| (sections.place(event), sections.number()))
        .to_vec();
        let (user, agent) = (Speaker::Role(Role::User), Speaker::Role(Role::Assistant));
        let expected = [
            (EventSection::Outside, 0),
            (EventSection::New(user), 1),
            (EventSection::New(user), 2),
            (EventSection::New(agent), 3),
            (EventSection::Same, 3),
            (EventSection::Same, 3),
            (EventSection::New(user), 4),
            (EventSection::New(agent), 5),
        ];
        assert_eq!(placed, expected);
    }
}
