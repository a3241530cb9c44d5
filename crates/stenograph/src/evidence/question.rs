//! What a person asks with a message, without what the agent adds to it. The first question names a session that has no title.

use super::user_message::{UserMessage, injected_length, is_command, markup_element, typed_words};
use crate::model::{Body, Event, Role};

/// A question in the words of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserQuestion {
    /// Words to the agent.
    Words(String),
    /// A command of the agent with its arguments: `/review src`.
    Command(String),
}

impl UserQuestion {
    /// The question of a message; `None` if nobody typed it, or nothing remains of it.
    pub fn of(event: &Event<'_>) -> Option<UserQuestion> {
        let Body::Message { role: Role::User, content } = &event.body else { return None };
        if UserMessage::of(event) != Some(UserMessage::Typed) {
            return None;
        }
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        if is_command(event, text) {
            return command(text).map(UserQuestion::Command);
        }
        let words = typed_words(event, text).unwrap_or_else(|| without_additions(event, text));
        Some(UserQuestion::Words(words.to_owned())).filter(|_| !words.is_empty())
    }

    /// The words of a message that has nothing but them and what the agent puts around them.
    pub(crate) fn wrapped_words(event: &Event<'_>) -> Option<String> {
        let Body::Message { role: Role::User, content } = &event.body else { return None };
        if content.others().next().is_some() {
            return None;
        }
        let joined = content.joined();
        let text = joined.decode();
        let mut around = event.extra.known().flat_map(|(info, _)| info.typed);
        around.find_map(|(begin, end)| {
            let words = text.trim().strip_prefix(begin)?.strip_suffix(end)?;
            (!words.contains(end)).then(|| words.trim().to_owned())
        })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            UserQuestion::Words(text) | UserQuestion::Command(text) => text,
        }
    }

    /// Whether a question is a command without words of its own: `/review` is one, `/review the parser` is not.
    pub(crate) fn is_bare_command(text: &str) -> bool {
        text.strip_prefix('/')
            .is_some_and(|name| !name.is_empty() && !name.contains(|char: char| char == '/' || char.is_whitespace()))
    }

    /// The command that a person typed, if the message records one: for the model, or for the agent itself such as `/clear`.
    pub(crate) fn typed_command(event: &Event<'_>) -> Option<String> {
        let Body::Message { role: Role::User, content } = &event.body else { return None };
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        COMMAND_BEGINS.iter().any(|begin| text.starts_with(begin)).then(|| command(text)).flatten()
    }
}

/// How the record of a command begins.
const COMMAND_BEGINS: [&str; 2] = ["<command-message>", "<command-name>"];

/// A command as people type it, from its elements.
fn command(text: &str) -> Option<String> {
    let element = |name: &str| {
        let inside = text.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0;
        Some(inside.trim()).filter(|inside| !inside.is_empty())
    };
    let name = element("command-name").or_else(|| element("command-message"))?;
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(format!("{slash}{name} {}", element("command-args").unwrap_or_default()).trim_end().to_owned())
}

/// A text without what the agent puts before it: texts that the format injects, and elements with the names of programs, which
/// have a `_` or a `-` in them.
fn without_additions<'t>(event: &Event<'_>, text: &'t str) -> &'t str {
    let mut rest = text;
    loop {
        let left = injected_length(event, rest).or_else(|| {
            let (name, after) = markup_element(rest)?;
            name.contains(['_', '-']).then_some(after.trim_start().len())
        });
        let Some(left) = left.filter(|left| *left > 0) else { return rest };
        rest = rest.get(rest.len() - left..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::FORMATS;
    use crate::read::all;

    /// The question of a record of a format whose people give commands.
    fn question(text: &str) -> Option<UserQuestion> {
        let format = FORMATS.iter().find(|format| !format.info().user.commands.is_empty()).unwrap();
        let record = format!(
            "{{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\",\"timestamp\":\"2026-03-02T09:14:05.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":{}}}}}\n",
            crate::text::quote(text)
        );
        all(*format, record.as_bytes()).events.iter().find_map(UserQuestion::of)
    }

    #[test]
    fn a_question_is_what_the_person_wrote() {
        for (text, expected) in [
            ("Fix it", Some("Fix it")),
            ("<ide_opened_file>The user opened a.rs</ide_opened_file>\nFix it", Some("Fix it")),
            ("<system-reminder>x</system-reminder>\n<ide_selection>y</ide_selection> Fix it", Some("Fix it")),
            ("<b>see</b> this", Some("<b>see</b> this")),
            ("<system-reminder>x</system-reminder>", None),
            ("[Request interrupted by user]", None),
            ("Warmup", None),
            ("Warmup the cache", Some("Warmup the cache")),
        ] {
            assert_eq!(question(text), expected.map(|text| UserQuestion::Words(text.to_owned())), "{text}");
        }
        let review = "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>src</command-args>";
        assert_eq!(question(review), Some(UserQuestion::Command("/review src".to_owned())));
    }

    #[test]
    fn a_bare_command_has_no_words_and_is_no_path() {
        let is_bare =
            ["/review", "/review src", "/etc/hosts is wrong", "/etc/hosts", "/"].map(UserQuestion::is_bare_command);
        assert_eq!(is_bare, [true, false, false, false, false]);
    }
}
