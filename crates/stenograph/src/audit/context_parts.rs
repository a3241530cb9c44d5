//! What the context of a conversation consists of, as far as its records have it. It counts bytes of text and does not guess how many
//! tokens they are.

use serde::{Deserialize, Serialize};

use crate::evidence::{self, UserMessage, added_context, request_rank};
use crate::model::{Body, Content, Event, Role};

/// The texts in the context of a conversation since its last compaction, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextParts {
    /// The instructions of the model: the system prompt.
    pub instructions: u64,
    /// The descriptions of the tools and the schemas of their input.
    pub tool_schemas: u64,
    /// The number of these tools.
    pub tools: u64,
    /// What a person typed.
    pub questions: u64,
    /// What the agent adds by itself: reminders, attachments, summaries.
    pub added: u64,
    /// The model's answers.
    pub answers: u64,
    /// Its thinking.
    pub thinking: u64,
    /// The names and inputs of its calls.
    pub calls: u64,
    /// Their results.
    pub results: u64,
    /// How well the records behind the instructions and the tools know them.
    ranks: [Option<u8>; 2],
}

impl ContextParts {
    /// The parts with their names.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("instructions", self.instructions),
            ("tool_schemas", self.tool_schemas),
            ("questions", self.questions),
            ("added", self.added),
            ("answers", self.answers),
            ("thinking", self.thinking),
            ("calls", self.calls),
            ("results", self.results),
        ]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.named().iter().fold(0, |sum, (_, size)| sum.saturating_add(*size))
    }

    /// Adds an event that is not repeated.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let add = |part: &mut u64, size: u64| *part = part.saturating_add(size);
        match &event.body {
            Body::Message { role: Role::User, content } => match UserMessage::of(event) {
                Some(UserMessage::Typed) => add(&mut self.questions, size_of(content)),
                _ => add(&mut self.added, size_of(content)),
            },
            Body::Message { role: Role::System | Role::Developer, content } => {
                add(&mut self.instructions, size_of(content));
            }
            Body::Message { role: Role::Assistant | Role::Tool | Role::Unknown, content } => {
                add(&mut self.answers, size_of(content));
            }
            Body::Thinking { content } => add(&mut self.thinking, size_of(content)),
            Body::ToolCall { name, input, .. } => {
                add(&mut self.calls, (name.len() + input.to_text().bytes().len()) as u64);
            }
            Body::ToolResult { content, .. } => add(&mut self.results, size_of(content)),
            Body::Compaction { summary } => {
                let added = summary.as_ref().map_or(0, size_of);
                let ContextParts { instructions, tool_schemas, tools, ranks, .. } = *self;
                *self = ContextParts { instructions, tool_schemas, tools, ranks, added, ..ContextParts::default() };
            }
            Body::Fact { .. } | Body::Other { .. } => self.add_facts(event),
            Body::Failure { .. } | Body::Stop { .. } => {}
        }
    }

    /// Adds what a record states about the request. A statement replaces an earlier one, unless that was nearer to what was sent.
    fn add_facts(&mut self, event: &Event<'_>) {
        let [instructions_rank, tools_rank] = request_rank(event);
        let [known_instructions, known_tools] = &mut self.ranks;
        let is_better =
            |rank: Option<u8>, known: &Option<u8>| rank.is_some() && known.is_none_or(|known| rank <= Some(known));
        if is_better(instructions_rank, known_instructions) {
            *known_instructions = instructions_rank;
            self.instructions = evidence::instructions(event).iter().map(|text| text.len() as u64).sum();
        }
        if is_better(tools_rank, known_tools) {
            let tools = evidence::tool_schemas(event);
            let size = |text: &Option<String>| text.as_ref().map_or(0, String::len);
            if tools.iter().any(|tool| tool.input.is_some()) {
                *known_tools = tools_rank;
                let sizes = tools.iter().map(|tool| tool.name.len() + size(&tool.description) + size(&tool.input));
                (self.tool_schemas, self.tools) = (sizes.sum::<usize>() as u64, tools.len() as u64);
            }
        }
        self.added = self.added.saturating_add(added_context(event));
    }
}

fn size_of(content: &Content<'_>) -> u64 {
    content.texts().map(|text| text.bytes().len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::claude_code::ClaudeCode;
    use crate::read::all;

    fn parts(lines: &[&str]) -> ContextParts {
        let mut parts = ContextParts::default();
        all(&ClaudeCode, lines.join("\n").as_bytes()).events.iter().for_each(|event| parts.add(event));
        parts
    }

    const SHAPE: &str = r#"{"type":"api-request-shape","sessionId":"s","shapeHash":"h","timestamp":"2026-01-01T00:00:00.000Z","shape":{"system":[{"type":"text","text":"Be brief."}],"tools":[{"name":"Bash","description":"Runs.","input_schema":{"a":1}}]}}"#;
    const SNAPSHOT: &str = r#"{"type":"attachment","uuid":"u1","parentUuid":null,"isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","attachment":{"type":"prompt_snapshot","systemPrompt":["Be very, very brief."],"tools":[{"name":"Bash","description":"Runs a command.","input_schema":{"a":1}}]}}"#;
    const REMINDER: &str = r#"{"type":"attachment","uuid":"u2","parentUuid":"u1","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","attachment":{"type":"date","date":"x"},"rendered":[{"content":"Today is Monday."}]}"#;
    const QUESTION: &str = r#"{"type":"user","uuid":"u3","parentUuid":"u2","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"H\u00f6re"}}"#;
    const SUMMARY: &str = r#"{"type":"system","subtype":"compact_boundary","uuid":"u4","parentUuid":null,"logicalParentUuid":"u3","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:02.000Z","content":"Conversation compacted"}"#;

    #[test]
    fn what_was_sent_counts_more_than_a_snapshot_of_it() {
        for lines in [[SHAPE, SNAPSHOT], [SNAPSHOT, SHAPE]] {
            let parts = parts(&lines);
            assert_eq!((parts.instructions, parts.tool_schemas, parts.tools), (9, 4 + 5 + 7, 1), "{lines:?}");
        }
        assert_eq!(parts(&[SNAPSHOT]).instructions, 20);
    }

    #[test]
    fn a_compaction_leaves_only_the_instructions_and_the_tools() {
        let before = parts(&[SHAPE, REMINDER, QUESTION]);
        assert_eq!((before.added, before.questions), (16, 5));
        let after = parts(&[SHAPE, REMINDER, QUESTION, SUMMARY]);
        assert_eq!((after.questions, after.instructions, after.tools), (0, 9, 1));
    }
}
