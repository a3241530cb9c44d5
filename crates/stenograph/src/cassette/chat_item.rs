//! One item of a chat, in the form that requests and recordings share, and the order in which both are compared. Events and the messages
//! of every vendor become the same items. `drift.rs` decides what differs.

use super::injected::{split_injected, without_changing_lines};
use crate::json::canonical;
use crate::model::{Body, Content, Data, Event, Input, PieceKind, Role};

/// One item of a chat.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatItem {
    /// A message.
    Message {
        /// The speaker.
        role: Role,
        /// The text.
        text: String,
    },
    /// A thought of the model.
    Thinking {
        /// Its readable text.
        text: String,
        /// The vendor's signature, if it is recorded.
        signature: Option<String>,
        /// The thought in a form that only Anthropic's service can read.
        redacted: Option<String>,
        /// The thought in a form that only OpenAI's service can read. No vendor reads the form of another.
        encrypted: Option<String>,
    },
    /// A tool call.
    Call {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Its input.
        input: Input<'static>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call.
        id: String,
        /// The text of the result.
        text: String,
    },
}

/// The separator between the texts of one answer.
pub(super) const GAP: &str = "\n\n";

impl ChatItem {
    /// The items of a body; none for a body that no model receives. Each text of a user message is an item of its own, because clients
    /// send them so. `id` identifies the call in both items.
    pub(super) fn of(body: &Body<'_>, id: &str) -> Vec<ChatItem> {
        match body {
            Body::Message { role: role @ (Role::Assistant | Role::System | Role::Developer), content } => {
                let text = texts(content).join(GAP);
                if text.is_empty() { Vec::new() } else { vec![ChatItem::Message { role: *role, text }] }
            }
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                let texts = texts(content).into_iter().filter(|text| !text.is_empty());
                texts.map(|text| ChatItem::Message { role: Role::User, text }).collect()
            }
            Body::Thinking { content } => {
                let text = content.joined().decode().into_owned();
                vec![ChatItem::Thinking { text, signature: None, redacted: None, encrypted: None }]
            }
            Body::ToolCall { name, input, .. } => {
                let input = input.clone().into_owned();
                vec![ChatItem::Call { id: id.to_owned(), name: name.to_string(), input }]
            }
            Body::ToolResult { content, .. } => {
                vec![ChatItem::Result { id: id.to_owned(), text: texts(content).join(GAP) }]
            }
            Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => Vec::new(),
        }
    }

    /// Whether it comes from the model.
    pub fn is_answer(&self) -> bool {
        match self {
            ChatItem::Message { role, .. } => *role == Role::Assistant,
            ChatItem::Thinking { .. } | ChatItem::Call { .. } => true,
            ChatItem::Result { .. } => false,
        }
    }

    /// Whether it is a prompt, which is not part of the conversation.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self, ChatItem::Message { role: Role::System | Role::Developer, .. })
    }

    /// The name of its kind.
    pub(super) fn name(&self) -> &'static str {
        match self {
            ChatItem::Message { role, .. } => role.name(),
            ChatItem::Thinking { .. } => "thinking",
            ChatItem::Call { .. } => "tool_call",
            ChatItem::Result { .. } => "tool_result",
        }
    }

    /// Its approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            ChatItem::Message { text, .. } | ChatItem::Thinking { text, .. } | ChatItem::Result { text, .. } => {
                text.len()
            }
            ChatItem::Call { name, input, .. } => name.len() + input.to_text().decode().len(),
        }
    }

    /// The text by which two items are compared. It leaves out the ids of calls, because a client may have other ones.
    pub(super) fn text(&self) -> String {
        match self {
            ChatItem::Message { text, .. } | ChatItem::Thinking { text, .. } | ChatItem::Result { text, .. } => {
                text.clone()
            }
            ChatItem::Call { name, input, .. } => format!("{name}({})", canonical(&input.to_object())),
        }
    }
}

/// The texts of a content. A piece that is not text becomes a word with a hash, so that a changed picture is a difference.
fn texts(content: &Content<'_>) -> Vec<String> {
    let pieces = match content {
        Content::Text(text) => return vec![text.decode().into_owned()],
        Content::Pieces(pieces) => pieces,
    };
    let mark = |what: &str, hash: u64| format!("[{what} {hash:016x}]");
    let one = |kind: &PieceKind<'_>| match kind {
        PieceKind::Text(text) => text.decode().into_owned(),
        PieceKind::Blob { media, data } => {
            let (Data::Inline(text) | Data::Url(text) | Data::File(text)) = data;
            mark(media.as_deref().unwrap_or("blob"), text.hash())
        }
        PieceKind::Other(raw) => mark("other", xxhash_rust::xxh3::xxh3_64(canonical(raw).as_bytes())),
    };
    pieces.iter().map(|piece| one(&piece.kind)).collect()
}

/// The first text in `extra` of an event whose path ends with this key, in whatever format.
pub(super) fn extra_text(event: &Event<'_>, key: &str) -> Option<String> {
    let mut found = None;
    for (_, extra) in event.extra.iter() {
        extra.each("", &mut |path, raw| {
            if found.is_none() && path.rsplit('.').next() == Some(key) {
                found = crate::text::Text::from_json(raw).and_then(crate::text::Text::exact).map(String::from);
            }
        });
    }
    found
}

/// A chat in the order for comparison: the joined text of each answer, then its calls; results in the order of their calls.
/// Thoughts are left out, because only some clients send them back. Injected texts go to `injected`.
pub(super) fn in_comparison_order(items: Vec<ChatItem>, injected: &mut Vec<String>) -> Vec<ChatItem> {
    let mut out: Vec<ChatItem> = Vec::with_capacity(items.len());
    let mut run = AnswerInProgress::default();
    for one in items {
        match one {
            ChatItem::Thinking { .. } => {}
            ChatItem::Message { role: Role::Assistant, text } => {
                run.end_results(&mut out);
                run.texts.push(text);
            }
            ChatItem::Call { .. } => {
                run.end_results(&mut out);
                run.calls.push(one);
            }
            ChatItem::Result { id, text } => {
                run.end_answer(&mut out);
                run.results.push(ChatItem::Result { id, text: without_changing_lines(split_injected(text, injected)) });
            }
            ChatItem::Message { role, text } => {
                let (before, text) = (injected.len(), split_injected(text, injected));
                // A message that is wholly injected is not an item.
                if text.is_empty() && injected.len() > before {
                    continue;
                }
                run.end_answer(&mut out);
                run.end_results(&mut out);
                out.push(ChatItem::Message { role, text });
            }
        }
    }
    run.end_answer(&mut out);
    run.end_results(&mut out);
    out
}

/// The items of one answer and its results, before they are sorted.
#[derive(Default)]
struct AnswerInProgress {
    texts: Vec<String>,
    calls: Vec<ChatItem>,
    results: Vec<ChatItem>,
    /// The ids of the calls of the last answer.
    last_call_ids: Vec<String>,
}

impl AnswerInProgress {
    fn end_answer(&mut self, out: &mut Vec<ChatItem>) {
        if self.texts.is_empty() && self.calls.is_empty() {
            return;
        }
        if !self.texts.is_empty() {
            let text = std::mem::take(&mut self.texts).join(GAP);
            out.push(ChatItem::Message { role: Role::Assistant, text });
        }
        let id = |call: &ChatItem| if let ChatItem::Call { id, .. } = call { id.clone() } else { String::new() };
        self.last_call_ids = self.calls.iter().map(id).collect();
        out.append(&mut self.calls);
    }

    fn end_results(&mut self, out: &mut Vec<ChatItem>) {
        if self.results.len() > 1 {
            let place: std::collections::HashMap<&str, usize> =
                self.last_call_ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
            self.results.sort_by_key(|result| match result {
                ChatItem::Result { id, .. } => place.get(id.as_str()).copied().unwrap_or(usize::MAX),
                ChatItem::Message { .. } | ChatItem::Thinking { .. } | ChatItem::Call { .. } => usize::MAX,
            });
        }
        out.append(&mut self.results);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> ChatItem {
        ChatItem::Message { role: Role::User, text: text.into() }
    }

    fn spoke(text: &str) -> ChatItem {
        ChatItem::Message { role: Role::Assistant, text: text.into() }
    }

    fn called(id: &str) -> ChatItem {
        ChatItem::Call { id: id.into(), name: "look".into(), input: Input::Json("{}".into()) }
    }

    fn answered(id: &str) -> ChatItem {
        ChatItem::Result { id: id.into(), text: format!("{id} done") }
    }

    #[test]
    fn an_answer_is_compared_as_its_text_and_then_its_calls() {
        let thought = ChatItem::Thinking { text: "hm".into(), signature: None, redacted: None, encrypted: None };
        let mixed = vec![user("go"), thought, called("a"), spoke("one"), called("b"), spoke("two"), answered("a")];
        let plain = vec![user("go"), spoke("one\n\ntwo"), called("a"), called("b"), answered("a")];
        assert_eq!(in_comparison_order(mixed, &mut Vec::new()), plain);
        assert_eq!(in_comparison_order(plain.clone(), &mut Vec::new()), plain);
    }

    #[test]
    fn results_are_in_the_order_of_their_calls() {
        let items = vec![called("a"), called("b"), answered("b"), answered("x"), answered("a"), user("well?")];
        let expected = vec![called("a"), called("b"), answered("a"), answered("b"), answered("x"), user("well?")];
        assert_eq!(in_comparison_order(items, &mut Vec::new()), expected);
    }

    #[test]
    fn injected_texts_are_removed() {
        let note = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        let items = vec![
            user(note),
            user("go"),
            called("a"),
            ChatItem::Result { id: "a".into(), text: format!("a done\n\n{note}") },
            user(note),
        ];
        let mut injected = Vec::new();
        assert_eq!(in_comparison_order(items, &mut injected), vec![user("go"), called("a"), answered("a")]);
        assert_eq!(injected, vec![note; 3]);
    }

    #[test]
    fn a_changed_picture_is_a_difference() {
        let picture = |data: &'static str| {
            let kind = PieceKind::Blob { media: Some("image/png".into()), data: Data::Inline(data.into()) };
            let piece = crate::model::Piece { kind, extra: crate::model::ExtraFields::default() };
            let content = Content::Pieces(vec![crate::model::Piece::text("see"), piece]);
            ChatItem::of(&Body::Message { role: Role::User, content }, "")
        };
        assert_eq!(picture("AAAA").len(), 2);
        assert_eq!(picture("AAAA"), picture("AAAA"));
        assert_ne!(picture("AAAA"), picture("AAAB"));
    }
}
