//! Whether a person typed a message in the role of the user. Agents write there too: instructions, the state of the folder, the output of
//! commands, notices about jobs. This is the one place that tells them apart; it looks at one event, with the tables of its format.

use super::notice::{JobNotice, is_interruption};
use crate::model::{Body, Event, Role};

/// What a message in the role of the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserMessage {
    /// A person typed it, at least in part.
    Typed,
    /// The agent wrote all of it: instructions, reminders, elements of markup.
    Injected,
    /// The agent reports on a job that went on after its call returned.
    JobNotice,
    /// The agent states that its user interrupted the run.
    Interruption,
}

impl UserMessage {
    /// What this event is; nothing for an event that is not a message in the role of the user.
    pub fn of(event: &Event<'_>) -> Option<UserMessage> {
        let Body::Message { role: Role::User, content } = &event.body else { return None };
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        Some(match () {
            () if JobNotice::of(event).is_some() => UserMessage::JobNotice,
            () if is_interruption(event, text) => UserMessage::Interruption,
            () if is_flagged(event) => UserMessage::Injected,
            () if typed_words(event, text).is_some() => UserMessage::Typed,
            // A picture without a word is what a person sends.
            () if !text.is_empty() && !is_command(event, text) && is_injected(event, text) => UserMessage::Injected,
            () => UserMessage::Typed,
        })
    }

    /// Whether a person begins a turn with it.
    pub fn begins_turn(self) -> bool {
        match self {
            UserMessage::Typed => true,
            UserMessage::Injected | UserMessage::JobNotice | UserMessage::Interruption => false,
        }
    }
}

/// Whether the record states that the agent wrote the message.
fn is_flagged(event: &Event<'_>) -> bool {
    let mut known = event.extra.known();
    known.any(|(info, extra)| {
        let is_agent = |(path, people): &(&str, &[&str])| {
            extra.word_at(path).is_some_and(|author| !people.contains(&author.as_ref()))
        };
        info.user.flags.iter().any(|path| extra.at(path) == Some("true")) || info.user.authors.iter().any(is_agent)
    })
}

/// Whether the message is a command with which a person asks the model something.
pub(super) fn is_command(event: &Event<'_>, text: &str) -> bool {
    let mut commands = event.extra.known().flat_map(|(info, _)| info.user.commands);
    commands.any(|begin| text.starts_with(begin))
}

/// The words that a person typed, in a message of an agent that surrounds them with its own.
pub(super) fn typed_words<'t>(event: &Event<'_>, text: &'t str) -> Option<&'t str> {
    let mut around = event.extra.known().flat_map(|(info, _)| info.typed);
    around.find_map(|(begin, end)| Some(text.split_once(begin)?.1.split_once(end)?.0.trim()))
}

/// Whether a text is a message of the agent, or consists of what the agent injects and of elements of markup: nobody types those.
fn is_injected(event: &Event<'_>, text: &str) -> bool {
    let mut messages = event.extra.known().flat_map(|(info, _)| info.user.messages);
    if messages.any(|(begin, end)| text.starts_with(begin) && text.ends_with(end)) {
        return true;
    }
    let mut rest = text;
    while let Some(length) = injected_length(event, rest) {
        rest = rest.get(rest.len() - length..).unwrap_or_default();
    }
    rest.is_empty() || is_markup(rest)
}

/// The length of what follows a text that the agent of this event injects, if one is at the beginning.
pub(super) fn injected_length(event: &Event<'_>, text: &str) -> Option<usize> {
    let mut marks = event.extra.known().flat_map(|(info, _)| info.injected);
    marks.find_map(|(begin, end)| Some(text.strip_prefix(begin)?.split_once(end)?.1.trim_start().len()))
}

/// Whether a text consists of elements of markup.
fn is_markup(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some((_, after)) = markup_element(rest) else { return false };
        rest = after.trim_start();
    }
    true
}

/// The name of the element of markup at the beginning of a text, and what follows the element.
pub(super) fn markup_element(text: &str) -> Option<(&str, &str)> {
    let (start, after) = text.strip_prefix('<')?.split_once('>')?;
    let name = start.split_whitespace().next().filter(|name| !name.is_empty())?;
    let after_end = |name: &str| Some(after.split_once(&format!("</{name}>"))?.1);
    // Some put two words into a name, and close both.
    Some((name, after_end(name).or_else(|| after_end(start))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::FORMATS;
    use crate::model::Content;
    use crate::read::all;

    fn is_typed(text: &str) -> bool {
        let event = Event::new(Body::Message { role: Role::User, content: Content::text(text) });
        UserMessage::of(&event) == Some(UserMessage::Typed)
    }

    #[test]
    fn markup_alone_is_not_typed() {
        assert!(!is_typed("<command-name>/clear</command-name>\n<command-args></command-args>"));
        assert!(!is_typed("<context of=\"x\">/x</context>"));
        assert!(!is_typed("<local-command-stdout></local-command-stdout>"));
        assert!(!is_typed("<two words>x</two words>\n"));
        for text in ["Fix it", "<b>see</b> this", "see <b>this</b>", "<b>this", "a < b", "<>", "< x", ""] {
            assert!(is_typed(text), "{text}");
        }
        let answer = Event::new(Body::Message { role: Role::Assistant, content: Content::text("Done") });
        assert_eq!(UserMessage::of(&answer), None);
    }

    /// A record of the format that injects this text, with this content.
    fn messages(begin: &str, content: &str) -> Vec<Event<'static>> {
        let injects = |info: &crate::model::FormatInfo| info.injected.iter().any(|(mark, _)| *mark == begin);
        let format = FORMATS.iter().find(|format| injects(format.info())).unwrap();
        let content = crate::text::quote(content);
        let records = [
            format!(
                "{{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\",\"timestamp\":\"2026-03-02T09:14:05.000Z\",\
                 \"message\":{{\"role\":\"user\",\"content\":{content}}}}}\n"
            ),
            format!(
                "{{\"timestamp\":\"2026-03-02T09:14:05.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
                 \"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":{content}}}]}}}}\n"
            ),
        ];
        let events = records.iter().flat_map(|record| all(*format, record.as_bytes()).events);
        events.filter(|event| UserMessage::of(event).is_some()).collect()
    }

    #[test]
    fn what_a_format_injects_is_not_typed_and_what_follows_it_is() {
        let rules = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>";
        let context = "<environment_context>\n<cwd>/w</cwd>\n</environment_context>";
        let what = |begin: &str, text: &str| {
            let found = messages(begin, text);
            assert_eq!(found.len(), 1, "{text}");
            UserMessage::of(&found[0]).unwrap()
        };
        let codex = "# AGENTS.md instructions";
        assert_eq!(what(codex, rules), UserMessage::Injected);
        assert_eq!(what(codex, &format!("{rules}\n{context}")), UserMessage::Injected);
        assert_eq!(what(codex, &format!("{rules}\nFix it")), UserMessage::Typed);
        // Without its end it may be a question about the file.
        assert_eq!(what(codex, "# AGENTS.md instructions are too long"), UserMessage::Typed);
        let warning = "Warning: apply_patch was requested via shell. Use the apply_patch tool instead of exec_command.";
        assert_eq!(what(codex, warning), UserMessage::Injected);
        assert_eq!(
            what(codex, "Warning: Your account was flagged for potentially high-risk cyber activity. So."),
            UserMessage::Injected
        );
        assert_eq!(what(codex, "Warning: it is late"), UserMessage::Typed);
        let reminder = "<system-reminder>";
        assert_eq!(what(reminder, "<system-reminder>\nx\n</system-reminder>\nrun it"), UserMessage::Typed);
        assert_eq!(what(reminder, "<system-reminder>\nx\n</system-reminder>"), UserMessage::Injected);
        assert_eq!(what(reminder, "[Request interrupted by user]"), UserMessage::Interruption);
        let asks = "<command-message>review</command-message>\n<command-name>/review</command-name>";
        assert_eq!(what(reminder, asks), UserMessage::Typed);
        let local = "<command-name>/clear</command-name>\n<command-message>clear</command-message>";
        assert_eq!(what(reminder, local), UserMessage::Injected);
        let notice =
            "<task-notification>\n<task-id>b5</task-id>\n<status>completed</status>\n</task-notification>\nRead it";
        assert_eq!(what(reminder, notice), UserMessage::JobNotice);
    }

    #[test]
    fn a_message_that_its_record_calls_the_agents_is_not_typed() {
        let record = r#"{"type":"user","isMeta":true,"uuid":"u","sessionId":"s","timestamp":"2026-03-02T09:14:05.000Z","message":{"role":"user","content":"Caveat: read on"}}"#;
        let events = all(&crate::formats::claude_code::ClaudeCode, record.as_bytes()).events;
        assert_eq!(UserMessage::of(&events[0]), Some(UserMessage::Injected));
    }
}
