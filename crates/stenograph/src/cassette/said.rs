//! One thing that was said in a conversation, as requests and recordings have it in common, and the order in which both are
//! compared. Events and the messages of every vendor become the same here; what differs is not decided here.

use super::injected::{split_injected, without_changing_lines};
use crate::json::canonical;
use crate::model::{Body, Content, Data, Event, Input, PieceKind, Role};

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Somebody said something.
    Message {
        /// Who.
        role: Role,
        /// What.
        text: String,
    },
    /// The model thought.
    Thinking {
        /// What is readable of it.
        text: String,
        /// The vendor's signature below it, where one was recorded.
        signature: Option<String>,
        /// The thought where Anthropic's service alone can read it.
        redacted: Option<String>,
        /// The thought where OpenAI's service alone can read it. Seals of one vendor mean nothing to another.
        encrypted: Option<String>,
    },
    /// The model called a tool.
    Call {
        /// What ties call and result.
        id: String,
        /// The tool.
        name: String,
        /// What it was given.
        input: Input<'static>,
    },
    /// A tool answered.
    Result {
        /// What ties call and result.
        id: String,
        /// What it answered.
        text: String,
    },
}

/// What stands between texts that are one answer.
pub(super) const GAP: &str = "\n\n";

impl Said {
    /// What a body says; nothing for what no model is told. A list of texts by a user is as many things, for that is how clients
    /// send what they gathered. `id` is what ties call and result.
    pub(super) fn of(body: &Body<'_>, id: &str) -> Vec<Said> {
        match body {
            Body::Message { role: role @ (Role::Assistant | Role::System | Role::Developer), content } => {
                let text = texts(content).join(GAP);
                if text.is_empty() { Vec::new() } else { vec![Said::Message { role: *role, text }] }
            }
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                let said = texts(content).into_iter().filter(|text| !text.is_empty());
                said.map(|text| Said::Message { role: Role::User, text }).collect()
            }
            Body::Thinking { content } => {
                let text = content.joined().decode().into_owned();
                vec![Said::Thinking { text, signature: None, redacted: None, encrypted: None }]
            }
            Body::ToolCall { name, input, .. } => {
                let input = input.clone().into_owned();
                vec![Said::Call { id: id.to_owned(), name: name.to_string(), input }]
            }
            Body::ToolResult { content, .. } => {
                vec![Said::Result { id: id.to_owned(), text: texts(content).join(GAP) }]
            }
            Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => Vec::new(),
        }
    }

    /// Whether the model said it.
    pub fn is_answer(&self) -> bool {
        match self {
            Said::Message { role, .. } => *role == Role::Assistant,
            Said::Thinking { .. } | Said::Call { .. } => true,
            Said::Result { .. } => false,
        }
    }

    /// Whether it only sets the stage: prompts that stand outside of the conversation.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self, Said::Message { role: Role::System | Role::Developer, .. })
    }

    /// What it is, in a word.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Said::Message { role, .. } => role.name(),
            Said::Thinking { .. } => "thinking",
            Said::Call { .. } => "tool_call",
            Said::Result { .. } => "tool_result",
        }
    }

    /// How many bytes it holds, about.
    pub(super) fn size(&self) -> usize {
        match self {
            Said::Message { text, .. } | Said::Thinking { text, .. } | Said::Result { text, .. } => text.len(),
            Said::Call { name, input, .. } => name.len() + input.to_text().decode().len(),
        }
    }

    /// The text by which two are compared. Ids of calls are no part of it: who asks may have its own.
    pub(super) fn text(&self) -> String {
        match self {
            Said::Message { text, .. } | Said::Thinking { text, .. } | Said::Result { text, .. } => text.clone(),
            Said::Call { name, input, .. } => format!("{name}({})", canonical(&input.to_object())),
        }
    }
}

/// The texts of a content. What is no text stands in its place as a word with a fingerprint, so that a changed picture shows.
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

/// The first text that stands below a key of that name in what is left of an event, in whatever words.
pub(super) fn left(event: &Event<'_>, key: &str) -> Option<String> {
    let mut found = None;
    for (_, residue) in event.extra.iter() {
        residue.each("", &mut |path, raw| {
            if found.is_none() && path.rsplit('.').next() == Some(key) {
                found = crate::text::Text::from_json(raw).and_then(crate::text::Text::exact).map(String::from);
            }
        });
    }
    found
}

/// A conversation as it is compared: of each answer its text as one, then its calls; results in the order of their calls. Thoughts are
/// left out, for some clients send them back and others must not. What an agent added by itself goes to `asides`.
pub(super) fn normal(said: Vec<Said>, asides: &mut Vec<String>) -> Vec<Said> {
    let mut out: Vec<Said> = Vec::with_capacity(said.len());
    let mut run = Run::default();
    for one in said {
        match one {
            Said::Thinking { .. } => {}
            Said::Message { role: Role::Assistant, text } => {
                run.end_results(&mut out);
                run.texts.push(text);
            }
            Said::Call { .. } => {
                run.end_results(&mut out);
                run.calls.push(one);
            }
            Said::Result { id, text } => {
                run.end_answer(&mut out);
                run.results.push(Said::Result { id, text: without_changing_lines(split_injected(text, asides)) });
            }
            Said::Message { role, text } => {
                let (before, text) = (asides.len(), split_injected(text, asides));
                // Nobody said what an agent only added.
                if text.is_empty() && asides.len() > before {
                    continue;
                }
                run.end_answer(&mut out);
                run.end_results(&mut out);
                out.push(Said::Message { role, text });
            }
        }
    }
    run.end_answer(&mut out);
    run.end_results(&mut out);
    out
}

/// What is gathered before it is put in order.
#[derive(Default)]
struct Run {
    texts: Vec<String>,
    calls: Vec<Said>,
    results: Vec<Said>,
    /// The ids of the calls of the last answer.
    asked: Vec<String>,
}

impl Run {
    fn end_answer(&mut self, out: &mut Vec<Said>) {
        if self.texts.is_empty() && self.calls.is_empty() {
            return;
        }
        if !self.texts.is_empty() {
            let text = std::mem::take(&mut self.texts).join(GAP);
            out.push(Said::Message { role: Role::Assistant, text });
        }
        let id = |call: &Said| if let Said::Call { id, .. } = call { id.clone() } else { String::new() };
        self.asked = self.calls.iter().map(id).collect();
        out.append(&mut self.calls);
    }

    fn end_results(&mut self, out: &mut Vec<Said>) {
        if self.results.len() > 1 {
            let place: std::collections::HashMap<&str, usize> =
                self.asked.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
            self.results.sort_by_key(|result| match result {
                Said::Result { id, .. } => place.get(id.as_str()).copied().unwrap_or(usize::MAX),
                Said::Message { .. } | Said::Thinking { .. } | Said::Call { .. } => usize::MAX,
            });
        }
        out.append(&mut self.results);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Said {
        Said::Message { role: Role::User, text: text.into() }
    }

    fn spoke(text: &str) -> Said {
        Said::Message { role: Role::Assistant, text: text.into() }
    }

    fn called(id: &str) -> Said {
        Said::Call { id: id.into(), name: "look".into(), input: Input::Json("{}".into()) }
    }

    fn answered(id: &str) -> Said {
        Said::Result { id: id.into(), text: format!("{id} done") }
    }

    #[test]
    fn an_answer_is_compared_as_its_text_and_then_its_calls() {
        let thought = Said::Thinking { text: "hm".into(), signature: None, redacted: None, encrypted: None };
        let mixed = vec![user("go"), thought, called("a"), spoke("one"), called("b"), spoke("two"), answered("a")];
        let plain = vec![user("go"), spoke("one\n\ntwo"), called("a"), called("b"), answered("a")];
        assert_eq!(normal(mixed, &mut Vec::new()), plain);
        assert_eq!(normal(plain.clone(), &mut Vec::new()), plain);
    }

    #[test]
    fn results_stand_in_the_order_of_their_calls() {
        let said = vec![called("a"), called("b"), answered("b"), answered("x"), answered("a"), user("well?")];
        let expected = vec![called("a"), called("b"), answered("a"), answered("b"), answered("x"), user("well?")];
        assert_eq!(normal(said, &mut Vec::new()), expected);
    }

    #[test]
    fn what_an_agent_adds_by_itself_is_set_aside() {
        let note = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        let said = vec![
            user(note),
            user("go"),
            called("a"),
            Said::Result { id: "a".into(), text: format!("a done\n\n{note}") },
            user(note),
        ];
        let mut asides = Vec::new();
        assert_eq!(normal(said, &mut asides), vec![user("go"), called("a"), answered("a")]);
        assert_eq!(asides, vec![note; 3]);
    }

    #[test]
    fn a_changed_picture_is_seen_without_being_kept() {
        let picture = |data: &'static str| {
            let kind = PieceKind::Blob { media: Some("image/png".into()), data: Data::Inline(data.into()) };
            let piece = crate::model::Piece { kind, extra: crate::model::ExtraFields::default() };
            let content = Content::Pieces(vec![crate::model::Piece::text("see"), piece]);
            Said::of(&Body::Message { role: Role::User, content }, "")
        };
        assert_eq!(picture("AAAA").len(), 2);
        assert_eq!(picture("AAAA"), picture("AAAA"));
        assert_ne!(picture("AAAA"), picture("AAAB"));
    }
}
