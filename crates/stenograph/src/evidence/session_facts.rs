//! Session facts in a record: the instructions and tools of the model, and how much of the account's rate limits is used.

use serde::Serialize;

use crate::json::{Object, items, number, word};
use crate::model::{Event, ExtraFields, LimitPaths, Role, SessionWords};
use crate::text::{Str, Text};

/// One window of a rate limit, as a record states it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLimit {
    /// The name of the window.
    pub window: String,
    /// How much of it is used, in percent.
    pub used_percent: f64,
    /// The length of the window in minutes.
    pub minutes: Option<u64>,
    /// When the window ends, in seconds since 1970.
    pub resets_at: Option<u64>,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The JSON schema of its input, as the source spells it.
    pub input: Option<String>,
}

/// The most tools of one record that are read.
const TOOLS_MAX: usize = 4_096;

/// The most texts of one field that are read.
const TEXTS_MAX: usize = 1_024;

/// The windows of rate limits that the record states.
pub fn rate_limits(event: &Event<'_>) -> Vec<RateLimit> {
    let limit = |paths: &LimitPaths, extra: &ExtraFields<'_>| {
        let object = extra.object_at(paths.object)?;
        let (used, all) = paths.used;
        let used: f64 = object.raw(used)?.parse().ok()?;
        let last = paths.object.rsplit('.').next().unwrap_or_default();
        let window = paths.name.and_then(|name| object.text(name)).map_or_else(|| last.to_owned(), Str::into_owned);
        let counter = |name: &str| object.raw(name).and_then(number);
        Some(RateLimit {
            window,
            used_percent: used / all * 100.0,
            minutes: paths.minutes.and_then(counter),
            resets_at: counter(paths.resets),
        })
    };
    let found =
        words(event).flat_map(|(words, extra)| words.rate_limits.iter().filter_map(move |paths| limit(paths, extra)));
    found.collect()
}

/// The tools that the model may call, according to the record.
pub fn tool_schemas(event: &Event<'_>) -> Vec<ToolSchema> {
    let mut found = Vec::new();
    for (words, extra) in words(event) {
        for raw in words.tools.iter().filter_map(|path| extra.at(path)) {
            add_tools(raw, Depth::List, &mut found);
        }
    }
    found
}

/// The nesting of a list of tools: some agents group tools, and none groups groups.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    List,
    Group,
}

fn add_tools(raw: &str, depth: Depth, found: &mut Vec<ToolSchema>) {
    for raw in items(raw).unwrap_or_default() {
        if found.len() >= TOOLS_MAX {
            return;
        }
        let Some(tool) = Object::parse(raw) else {
            found.extend(word(raw).map(|name| ToolSchema { name: name.into_owned(), description: None, input: None }));
            continue;
        };
        if let Some(group) = tool.peek("tools").filter(|_| depth == Depth::List) {
            add_tools(group, Depth::Group, found);
            continue;
        }
        // The Chat Completions API wraps the tool in an object that states its type.
        let tool = tool.peek("function").and_then(Object::parse).unwrap_or(tool);
        let Some(name) = tool.peek_str("name") else { continue };
        let schema = ["input_schema", "parameters", "inputSchema", "schema"].into_iter().find_map(|key| tool.peek(key));
        found.push(ToolSchema {
            name: name.into_owned(),
            description: tool.peek_str("description").map(Str::into_owned),
            input: schema.map(str::to_owned),
        });
    }
}

/// The texts that instruct the model: a system or developer message, or a field with a text or a list of texts.
pub fn instructions(event: &Event<'_>) -> Vec<String> {
    let message = event.content().filter(|_| matches!(event.role(), Some(Role::System | Role::Developer)));
    let mut found: Vec<String> = message.map(|content| content.joined().decode().into_owned()).into_iter().collect();
    for (words, extra) in words(event) {
        found.extend(words.instructions.iter().filter_map(|path| extra.at(path)).flat_map(texts));
    }
    found.retain(|text| !text.trim().is_empty());
    found
}

/// How well the record knows the instructions and the tools of a request: the position of its field in the table of the format.
pub(crate) fn request_rank(event: &Event<'_>) -> [Option<u8>; 2] {
    let rank = |paths: &dyn Fn(&SessionWords) -> &'static [&'static str]| {
        words(event).find_map(|(words, extra)| {
            let at = paths(words).iter().position(|path| extra.at(path).is_some())?;
            u8::try_from(at).ok()
        })
    };
    [rank(&|words| words.instructions), rank(&|words| words.tools)]
}

/// The texts of a field: a text, a block, or a list of them.
fn texts(raw: &str) -> Vec<String> {
    match items(raw) {
        Some(items) => items.into_iter().take(TEXTS_MAX).filter_map(instruction).collect(),
        None => instruction(raw).into_iter().collect(),
    }
}

/// The bytes of the texts in this record that the agent adds to the next request by itself.
pub(crate) fn added_context(event: &Event<'_>) -> u64 {
    let fields = words(event).flat_map(|(words, extra)| words.added.iter().filter_map(|path| extra.at(path)));
    fields.flat_map(texts).map(|text| text.len() as u64).sum()
}

/// The text of a string, or of a block with a text.
fn instruction(raw: &str) -> Option<String> {
    let block = Object::parse(raw);
    let of_block =
        |block: &Object<'_>| ["text", "content"].into_iter().find_map(|key| block.peek(key).map(str::to_owned));
    let raw = block.as_ref().map_or_else(|| Some(raw.to_owned()), of_block)?;
    let text = Text::from_json(&raw)?;
    Some(text.decode().into_owned())
}

/// The format of the session that the session of this record was moved from, if its agent states it.
pub fn moved_from(event: &Event<'_>) -> Option<String> {
    let stated = |path: &&str, extra: &ExtraFields<'_>| extra.word_at(path).map(Str::into_owned);
    words(event).find_map(|(words, extra)| words.moved_from.iter().find_map(|path| stated(path, extra)))
}

fn words<'e, 'a>(event: &'e Event<'a>) -> impl Iterator<Item = (&'static SessionWords, &'e ExtraFields<'a>)> {
    event.extra.known().map(|(info, extra)| (&info.session, extra))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::claude_code::ClaudeCode;
    use crate::formats::codex::Codex;
    use crate::read::all;

    #[test]
    fn a_codex_count_states_two_windows() {
        let line = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":26.5,"window_minutes":300,"resets_at":1781722434},"secondary":null}}}"#;
        let found = rate_limits(&all(&Codex, line.as_bytes()).events[0]);
        let primary = RateLimit {
            window: "primary".to_owned(),
            used_percent: 26.5,
            minutes: Some(300),
            resets_at: Some(1_781_722_434),
        };
        assert_eq!(found, [primary]);
    }

    #[test]
    fn a_header_lists_its_tools_alone_or_in_groups() {
        let line = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"a","dynamic_tools":[{"type":"namespace","name":"app","tools":[{"type":"function","name":"look","description":"d","parameters":{"type":"object"}}]},{"name":"run"}]}}"#;
        let tools = tool_schemas(&all(&Codex, line.as_bytes()).events[0]);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["look", "run"]);
        assert_eq!(tools[0].input.as_deref(), Some(r#"{"type":"object"}"#));
        let line = r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","tools":["Bash","Read"],"model":"m","uuid":"u"}"#;
        let tools = tool_schemas(&all(&ClaudeCode, line.as_bytes()).events[0]);
        assert_eq!(tools.len(), 2);
    }

    #[test]
    fn instructions_are_messages_or_fields() {
        let line = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"a","base_instructions":{"text":"Be brief."}}}"#;
        let events = all(&Codex, line.as_bytes()).events;
        let found: Vec<String> = events.iter().flat_map(instructions).collect();
        assert_eq!(found, ["Be brief."]);
    }

    #[test]
    fn a_snapshot_and_a_request_list_instructions_and_tools() {
        let source = include_bytes!("../formats/claude_code/fixtures/requests.jsonl");
        let events = all(&ClaudeCode, source).events;
        let found: Vec<String> = events.iter().flat_map(instructions).collect();
        let snapshot = ["You help with a calendar.", "# Tools\nPrefer Read."];
        assert_eq!(found, [&snapshot[..], &["You are an agent.", "You help with a calendar."]].concat());
        let tools: Vec<ToolSchema> = events.iter().flat_map(tool_schemas).collect();
        // The snapshot, the request, and the name in the list of used tools.
        assert_eq!(tools.iter().filter(|tool| tool.input.is_some()).count(), 2);
        assert!(tools.iter().all(|tool| tool.name == "Bash"));
    }
}
