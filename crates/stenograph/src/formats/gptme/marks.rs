//! The marks in the text of an answer: thinking in `<think>`, and calls as `@tool(id): {...}` at the beginning of a line.

use std::borrow::Cow;

use crate::formats::record_map::MarkedText;
use crate::json::is_valid;
use crate::model::{Body, Content, Input, Role};

/// The marks of gptme.
pub const MARKS: MarkedText = MarkedText { split, join };

const THINK: (&str, &str) = ("<think>\n", "\n</think>\n\n");

/// Splits an answer into thinking, a message and calls. A text that does not join to the same text again has no marks.
fn split(text: &str) -> Vec<Body<'static>> {
    let mut bodies = Vec::new();
    let mut rest = text;
    if let Some((thought, after)) = rest.strip_prefix(THINK.0).and_then(|rest| rest.split_once(THINK.1)) {
        bodies.push(Body::Thinking { content: Content::text(thought.to_owned()) });
        rest = after;
    }
    let mut calls = Vec::new();
    while let Some((before, call)) = last_call(rest) {
        calls.push(call);
        rest = before;
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        bodies.push(Body::Message { role: Role::Assistant, content: Content::text(rest.to_owned()) });
    }
    bodies.extend(calls.into_iter().rev());
    bodies
}

/// The call on the last lines of a text, and the text before it.
fn last_call(text: &str) -> Option<(&str, Body<'static>)> {
    let (before, spelled) = match text.rsplit_once("\n@") {
        Some((before, spelled)) => (before, spelled),
        None => ("", text.strip_prefix('@')?),
    };
    let (head, input) = spelled.split_once("): ")?;
    let (name, id) = head.split_once('(')?;
    let is_name =
        !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'));
    if !is_name || id.is_empty() || !input.starts_with('{') || !is_valid(input) {
        return None;
    }
    let (call, name) = (Some(Cow::Owned(id.to_owned())), Cow::Owned(name.to_owned()));
    Some((before, Body::ToolCall { call, name, input: Input::Json(Cow::Owned(input.to_owned())) }))
}

fn join(bodies: &[&Body<'_>]) -> String {
    let mut text = String::new();
    let mut lines = 0;
    for body in bodies {
        match body {
            Body::Thinking { content } => {
                text.push_str(&format!("{}{}{}", THINK.0, content.joined().decode(), THINK.1));
            }
            Body::ToolCall { call, name, input } => {
                let newline = if lines == 0 { "" } else { "\n" };
                let id = call.as_deref().unwrap_or_default();
                text.push_str(&format!("{newline}@{name}({id}): {}", input.to_text().decode()));
                lines += 1;
            }
            _ => {
                text.push_str(
                    &body.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default(),
                );
                lines += 1;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let bodies = split(text);
        assert_eq!(join(&bodies.iter().collect::<Vec<_>>()), text);
        bodies
            .iter()
            .map(|body| match body {
                Body::Thinking { .. } => "thinking".to_owned(),
                Body::ToolCall { name, .. } => name.to_string(),
                body => body.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default(),
            })
            .collect()
    }

    #[test]
    fn an_answer_has_thinking_words_and_calls() {
        let text = "<think>\nhm\n</think>\n\nI look.\n@shell(c1): {\"command\": \"ls\"}\n@read(c2): {\"path\":\"a\"}";
        assert_eq!(kinds(text), ["thinking", "I look.", "shell", "read"]);
        assert_eq!(kinds("@shell(c1): {}"), ["shell"]);
        assert_eq!(kinds("see\n@shell(c1): not JSON"), ["see\n@shell(c1): not JSON"]);
        assert_eq!(kinds("mail me\n@home"), ["mail me\n@home"]);
    }
}
