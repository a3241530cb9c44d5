//! Chat Completions messages, one per line: CycoD's chat history, and files of other tools. See `README.md` beside this file.

mod name;
mod read;
mod write;

pub use super::chat::NOT_ANSWERED;
pub use name::file_name;

use super::chat;
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::json::{Object, items};
use crate::model::{CallWords, ExitCodeAt, Outline};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `openai-chat`.
#[derive(Debug)]
pub struct OpenaiChat;

const NAME: &str = "openai-chat";

/// The name of the fact that a title is locked. CycoD states it in both of its formats.
pub const TITLE_LOCKED: &str = "title_locked";

/// The name of the fact for a line that holds a whole conversation. It has the other fields of the line.
const CONVERSATION: &str = "conversation";

/// The name of the fact that holds the tools of such a line.
const TOOLS: &str = "tools";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "cycod",
    title: "Chat Completions messages as JSON lines (CycoD's chat history)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "~/.cycod/history/chat-history-<session>.jsonl",
        "~/.cycod/history/chat-history*.jsonl",
        "~/.cycod/history/exception-chat-history-<session>.jsonl",
        "~/.cycod/exceptions/exception-chat-history-<session>.jsonl",
        ".cycod/history/chat-history-<session>.jsonl",
        ".cycod/history/chat-history*.jsonl",
        ".cycod/history/exception-chat-history-<session>.jsonl",
        "chat-history-<session>.jsonl",
        "chat-history*.jsonl",
        "exception-chat-history-<session>.jsonl",
    ],
    resume: Some("cycod --input-chat-history {file} --output-chat-history {file}"),
    spec: "OpenAI, Chat Completions messages; CycoD, docs/chat-history.md",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    // A locked title is a fact; an unlocked one is the default.
    spelling: &[
        "role",
        "tool_calls.type",
        "tool_calls.function.arguments",
        "function_call.arguments",
        "_meta.titleLocked",
    ],
    record_schema: &[
        "role=system: content text|list",
        "role=user: content text|list",
        "role=assistant: content text|list|null, tool_calls[].id text, tool_calls[].type text, \
         tool_calls[].function.name text, tool_calls[].function.arguments text",
        "role=tool: tool_call_id text, content text|list, content[].text text",
    ],
    calls: WORDS,
    ..FormatInfo::BLANK
};

/// The texts with which CycoD reports the outcome of a command.
pub(super) const WORDS: CallWords = CallWords {
    exit_codes: &[ExitCodeAt::Last("<exited with exit code ")],
    failure_prefixes: &["<timed out and killed process", "<exited with error: "],
    ..CallWords::NONE
};

impl Format for OpenaiChat {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let Some((first, later)) = objects.split_first() else { return Sniff::No };
        let cut = head.is_first_line_cut();
        let ours = |object: &Object<'_>| {
            chat::is_message(object) || is_conversation(object) || (cut && chat::may_be_message(object))
        };
        if !later.iter().all(ours) {
            return Sniff::No;
        }
        match (ours(first), is_header(first)) {
            (_, true) => Sniff::Certain,
            (true, false) => Sniff::Likely,
            // CycoD ignores an unknown first line, and its own tests have such lines.
            (false, false) if first.keys().count() == 1 && later.first().is_some_and(chat::is_message) => Sniff::Likely,
            (false, false) => Sniff::No,
        }
    }

    fn reader(&self, want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::ChatReader::new(want)))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ChatWriter::new(outline))
    }
}

/// Whether an object is CycoD's header line, which describes the conversation as a whole.
fn is_header(object: &Object<'_>) -> bool {
    let keys_known = object.keys().all(|key| key == "_meta" || key == crate::carry::KEY);
    keys_known && object.peek("_meta").is_some_and(|raw| raw.starts_with('{'))
}

/// Whether an object is a line of a training file: a whole conversation.
fn is_conversation(object: &Object<'_>) -> bool {
    const KEYS: [&str; 6] =
        ["messages", TOOLS, "functions", "parallel_tool_calls", "response_format", crate::carry::KEY];
    let messages = object.peek("messages").and_then(items).unwrap_or_default();
    object.keys().all(|key| KEYS.contains(&key))
        && !messages.is_empty()
        && messages.into_iter().all(|raw| Object::parse(raw).is_some_and(|message| chat::is_message(&message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, NoteKind};

    fn sniffed(text: &str) -> Sniff {
        OpenaiChat.sniff(&Head::new(text.as_bytes()))
    }

    #[test]
    fn messages_of_other_systems_are_not_claimed() {
        for text in [
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look","input":{}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}"#,
            "{\"role\":\"_system_prompt\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":\"x\"}",
            "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"_checkpoint\",\"id\":0}",
            "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"_usage\",\"token_count\":3}",
            r#"{"role":"user","message":{"content":[{"type":"text","text":"x"}]}}"#,
            r#"{"role":"user","content":"x","timestamp":"2025-01-01T00:00:00Z"}"#,
            r#"{"messages":[{"role":"user","content":"x"}],"kwargs":{}}"#,
            r#"{"messages":[]}"#,
            r#"{"role":"assistant","content":"x","model":"m","usage":{"input_tokens":3}}"#,
            r#"{"banana":1}"#,
        ] {
            assert_eq!(sniffed(text), Sniff::No, "{text}");
        }
    }

    #[test]
    fn a_very_long_first_message_is_claimed() {
        let long = "x".repeat(70 << 10);
        assert_eq!(sniffed(&format!("{{\"role\":\"user\",\"content\":\"{long}\"}}\n")), Sniff::Likely);
        assert_eq!(
            sniffed(&format!("{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{long}\"}}\n")),
            Sniff::Likely
        );
        assert_eq!(sniffed(&format!("{{\"role\":\"user\",\"timestamp\":1,\"content\":\"{long}\"}}\n")), Sniff::No);
        assert_eq!(sniffed("{\"role\":\"user\"}\n"), Sniff::No);
    }

    #[test]
    fn an_unknown_role_is_kept_with_a_note() {
        let found = crate::read::all(&OpenaiChat, br#"{"role":"narrator","content":"Meanwhile"}"#);
        assert!(matches!(&found.events[0].body, Body::Other { name: Some(name), bytes: None } if name == "narrator"));
        assert_eq!(found.notes[0].kind, NoteKind::UnknownType);
    }

    #[test]
    fn a_message_may_state_its_model_and_usage() {
        let line = r#"{"role":"assistant","content":"Hi.","tool_calls":[{"id":"a","function":{"name":"look","arguments":"{}"},"type":"function"}],"model":"gpt-4o","usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}"#;
        assert_eq!(sniffed(line), Sniff::Likely);
        let found = crate::read::all(&OpenaiChat, line.as_bytes());
        let usage = found.events[0].usage.unwrap();
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(8), Some(4), Some(3)));
        assert!(found.events[1].usage.is_none());
        assert!(found.events.iter().all(|event| event.model.as_deref() == Some("gpt-4o")));
        let again = crate::write::all(&OpenaiChat, &Outline::of(NAME, &found.events), &found.events);
        assert_eq!(String::from_utf8(again).unwrap().trim_end(), line);
    }
}
