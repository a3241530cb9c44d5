//! Writes CycoD's trajectories in the current form. Calls wait for their results, so that both are written together.

use super::{
    AFTER, BEFORE, LOCKED, NAME, RULE, STATUS, STATUS_OPENS, TITLE_LOCKED, TITLE_OPENS, UNLOCKED, UNTITLED, calls, read,
};
use crate::formats::blocks::{is_blank, original_spelling};
use crate::formats::placeholder;
use crate::model::{Body, Content, Event, Fact, Outline, Role};
use crate::text::Text;
use crate::write::{Writer, WriterOutput};

/// The shape of a block; it decides how many blank lines follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockShape {
    /// The title.
    Header,
    /// Text, quoted or not.
    Text,
    /// Calls and results in a fence.
    Fence,
}

impl BlockShape {
    /// How many blank lines CycoD writes after a block of this shape.
    pub fn blank_lines_after(before: Option<BlockShape>) -> u64 {
        match before {
            None | Some(BlockShape::Fence) => 0,
            Some(BlockShape::Text) => 1,
            Some(BlockShape::Header) => 2,
        }
    }
}

/// Writes one file. System prompts, thoughts, failures and stops have no place.
#[derive(Debug)]
pub struct TrajectoryWriter {
    origin: &'static str,
    title: Option<String>,
    before: Option<BlockShape>,
    waiting_pairs: Vec<CallPair>,
}

/// A call and its result, either of which may be missing.
#[derive(Debug)]
struct CallPair {
    call: Option<Event<'static>>,
    result: Option<Event<'static>>,
}

impl TrajectoryWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> TrajectoryWriter {
        TrajectoryWriter {
            origin: outline.origin,
            title: outline.stated_title.clone(),
            before: None,
            waiting_pairs: Vec::new(),
        }
    }

    /// Writes a block back to the file it came from: with its original bytes, unless it was edited.
    fn own_block(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        let extra = first.extra.get(NAME);
        let blank_lines_before = extra.and_then(|extra| extra.raw(BEFORE)).and_then(blank_lines);
        let (shape, record) = match &first.body {
            Body::Fact { .. } => (BlockShape::Header, Some(header(events, extra.and_then(|extra| extra.raw(STATUS))))),
            Body::ToolCall { .. } | Body::ToolResult { .. } => (BlockShape::Fence, block_bytes(events)),
            Body::Message { .. } => (BlockShape::Text, block_bytes(events)),
            Body::Thinking { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {
                return;
            }
        };
        let Some(mut record) = original_spelling(NAME, events, read::reread).or(record) else { return };
        let after = extra.and_then(|extra| extra.raw(AFTER)).and_then(Text::from_json);
        record.extend(after.iter().flat_map(|after| after.bytes().into_owned()).filter(u8::is_ascii_whitespace));
        let bare = shape == BlockShape::Fence && !record.starts_with(b"`");
        self.put(if bare { BlockShape::Text } else { shape }, record, blank_lines_before, out);
    }

    fn event(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        match &event.body {
            Body::ToolCall { .. } => {
                self.waiting_pairs.push(CallPair { call: Some(event.clone().into_owned()), result: None });
            }
            Body::ToolResult { call, .. } => self.result(call.as_deref(), event, out),
            Body::Message { .. } | Body::Compaction { .. } => {
                if let Some(record) = block_bytes(std::slice::from_ref(event)) {
                    self.flush(out);
                    self.put(BlockShape::Text, record, None, out);
                }
            }
            Body::Fact { .. } | Body::Thinking { .. } => {}
            Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {}
        }
    }

    /// Adds a result to its call: the one with its id, or else the oldest one without a result. When no call waits, all are
    /// written.
    fn result(&mut self, id: Option<&str>, event: &Event<'_>, out: &mut WriterOutput) {
        let event = event.clone().into_owned();
        let open = |pair: &&mut CallPair| pair.result.is_none();
        let mut pairs = self.waiting_pairs.iter_mut().filter(open);
        let found = match id {
            Some(id) => pairs.find(|pair| pair.call.as_ref().and_then(Event::call) == Some(id)),
            None => pairs.next(),
        };
        match found {
            Some(pair) => pair.result = Some(event),
            None => {
                self.flush(out);
                self.waiting_pairs.push(CallPair { call: None, result: Some(event) });
            }
        }
        if self.waiting_pairs.iter().all(|pair| pair.result.is_some()) {
            self.flush(out);
        }
    }

    /// Writes the waiting calls. A call without a result is written alone, as CycoD did before it began to wait.
    fn flush(&mut self, out: &mut WriterOutput) {
        let pairs = std::mem::take(&mut self.waiting_pairs);
        let events: Vec<Event<'static>> =
            pairs.into_iter().flat_map(|pair| [pair.call, pair.result]).flatten().collect();
        if !events.is_empty() {
            self.put(BlockShape::Fence, fenced(events.iter()), None, out);
        }
    }

    fn put(&mut self, shape: BlockShape, record: Vec<u8>, blank_lines_before: Option<Vec<u8>>, out: &mut WriterOutput) {
        out.glue(blank_lines_before.unwrap_or_else(|| empty_lines(BlockShape::blank_lines_after(self.before))));
        out.record(record);
        out.glue("\n");
        self.before = Some(shape);
    }
}

/// The largest number of blank lines kept.
const GAP_MAX: usize = 1024;

fn empty_lines(count: u64) -> Vec<u8> {
    vec![b'\n'; usize::try_from(count).unwrap_or(GAP_MAX).min(GAP_MAX)]
}

/// The blank lines before a block: a number of empty lines, or lines that are not quite empty.
fn blank_lines(raw: &str) -> Option<Vec<u8>> {
    match Text::from_json(raw) {
        Some(text) => Some(text.bytes().into_owned()).filter(|lines| is_blank(lines) && lines.ends_with(b"\n")),
        None => crate::json::number(raw).map(empty_lines),
    }
}

impl Writer for TrajectoryWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        if self.origin == NAME {
            return self.own_block(events, out);
        }
        if self.before.is_none() {
            let body = Body::Fact { fact: Fact::Title, content: self.title.take().map(Content::text) };
            // The lock comes with the title, if there is one.
            let locked = events.iter().filter(|event| is_lock(event)).cloned();
            let facts: Vec<Event<'_>> = std::iter::once(Event::new(body)).chain(locked).collect();
            self.put(BlockShape::Header, header(&facts, None), None, out);
        }
        events.iter().for_each(|event| self.event(event, out));
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.flush(out);
    }
}

fn is_lock(event: &Event<'_>) -> bool {
    matches!(&event.body, Body::Fact { fact: name, .. } if name == TITLE_LOCKED)
}

/// The header of a title, locked if the events say so; `status` is a JSON string, for a status that CycoD does not have.
pub fn header(events: &[Event<'_>], status: Option<&str>) -> Vec<u8> {
    let title = events.first().and_then(Event::content);
    let title = title.map_or_else(|| UNTITLED.into(), |content| content.joined().bytes().into_owned());
    let default_status = if events.iter().any(is_lock) { LOCKED } else { UNLOCKED };
    let status = status.and_then(Text::from_json);
    let status = status.map_or_else(|| default_status.as_bytes().to_vec(), |status| status.bytes().into_owned());
    let on_one_line = title.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
    let mut header = TITLE_OPENS.as_bytes().to_vec();
    header.extend(on_one_line);
    header.extend_from_slice(format!("\"\n{STATUS_OPENS}").as_bytes());
    header.extend_from_slice(&status);
    header.extend_from_slice(format!("\n\n{RULE}").as_bytes());
    header
}

/// The bytes of one block in the current form; `None` for events without a place.
pub fn block_bytes(events: &[Event<'_>]) -> Option<Vec<u8>> {
    let first = events.first()?;
    match &first.body {
        Body::Message { role: Role::User | Role::Tool, content } => Some(quoted(content)),
        // Agents give the model the summary of a compaction as a user message.
        Body::Compaction { summary } => summary.as_ref().map(quoted),
        Body::Message { role: Role::Assistant | Role::Unknown, content } => {
            let text = placeholder::joined(content);
            let text = without_blank_lines(&text.bytes()).to_vec();
            (!text.is_empty()).then_some(text)
        }
        Body::Message { role: Role::System | Role::Developer, .. } => None,
        Body::ToolCall { .. } | Body::ToolResult { .. } => Some(fenced(in_pairs(events).into_iter())),
        Body::Fact { .. } | Body::Thinking { .. } => None,
        Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => None,
    }
}

/// The events in pairs of call and result, if as many results follow the calls.
fn in_pairs<'e, 'a>(events: &'e [Event<'a>]) -> Vec<&'e Event<'a>> {
    let is_call = |event: &&Event<'_>| matches!(event.body, Body::ToolCall { .. });
    let (calls, results) = events.split_at(events.len() / 2);
    if calls.len() == results.len()
        && calls.iter().all(|event| is_call(&event))
        && !results.iter().any(|event| is_call(&event))
    {
        return calls.iter().zip(results).flat_map(|(call, result)| [call, result]).collect();
    }
    events.iter().collect()
}

fn fenced<'e, 'a: 'e>(events: impl Iterator<Item = &'e Event<'a>>) -> Vec<u8> {
    let mut inside = Vec::new();
    for event in events {
        match &event.body {
            Body::ToolCall { name, input, .. } => calls::write_call(name, input, &mut inside),
            Body::ToolResult { content, .. } => calls::write_result(content, &mut inside),
            Body::Message { .. } | Body::Fact { .. } | Body::Thinking { .. } | Body::Compaction { .. } => {}
            Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {}
        }
    }
    let longest = inside.split(|byte| *byte != b'`').map(<[u8]>::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let mut block = format!("{fence}xml\n").into_bytes();
    block.extend_from_slice(&inside);
    block.extend_from_slice(fence.as_bytes());
    block
}

fn quoted(content: &Content<'_>) -> Vec<u8> {
    let text = placeholder::joined(content);
    let mut block = Vec::new();
    for (index, line) in text.bytes().split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            block.push(b'\n');
        }
        let line = [b"> ", line].concat();
        block.extend_from_slice(trimmed_end(&line));
    }
    block
}

/// A line without trailing spaces, tabs and carriage returns.
pub fn trimmed_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).map_or(0, |last| last + 1);
    line.get(..end).unwrap_or_default()
}

/// A text without the blank lines before it and the empty lines after it; empty if it is blank.
pub fn without_blank_lines(text: &[u8]) -> &[u8] {
    let lead = text.len() - text.trim_ascii_start().len();
    let from = text.get(..lead).unwrap_or_default().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let to = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    text.get(from..to).filter(|text| !is_blank(text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::cycod_trajectory::CycodTrajectory;
    use crate::model::{Data, ExtraFields, Input, Piece, PieceKind};
    use crate::write;

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: id.into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        let content = Content::text(id);
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
    }

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn written(events: &[Event<'_>]) -> String {
        String::from_utf8(write::all(&CycodTrajectory, &Outline::of("codex", events), events)).unwrap()
    }

    #[test]
    fn parallel_calls_share_one_fence_each_with_its_result() {
        let text = written(&[call("a"), call("b"), result("b"), result("a"), call("c"), result("c")]);
        let tools: Vec<&str> =
            text.lines().filter(|line| line.len() == 1 || line.contains('"') || line.contains("```")).collect();
        let expected =
            ["# Title: \"Untitled\"", "```xml", "<invoke name=\"a\">", "a", "<invoke name=\"b\">", "b", "```"];
        assert_eq!(tools[..7], expected);
        assert_eq!(tools[7..], ["```xml", "<invoke name=\"c\">", "c", "```"]);
    }

    #[test]
    fn a_call_without_a_result_is_not_lost() {
        let events = [message(Role::User, "hi"), call("a"), message(Role::Assistant, "stopped")];
        let found = crate::read::all(&CycodTrajectory, written(&events).as_bytes());
        let kinds: Vec<&str> = found.events.iter().map(|event| event.kind().name()).collect();
        assert_eq!(kinds, ["fact", "message", "tool_call", "message"]);
    }

    #[test]
    fn summaries_and_images_are_not_lost_silently() {
        let summary = Event::new(Body::Compaction { summary: Some(Content::text("we named trees")) });
        let kind = PieceKind::Blob { media: Some("image/png".into()), data: Data::Inline("AAAA".into()) };
        let content = Content::Pieces(vec![Piece { kind, extra: ExtraFields::default() }]);
        let image = Event::new(Body::ToolResult { call: Some("a".into()), name: None, content, error: None });
        let text = written(&[summary, call("a"), image]);
        assert!(text.contains("\n> we named trees\n"));
        assert!(text.contains("<function_results>\n[image]\n</function_results>"));
    }

    #[test]
    fn users_are_quoted_and_system_prompts_left_out() {
        let text = written(&[
            message(Role::System, "be kind"),
            message(Role::User, "a \n\nb"),
            message(Role::Assistant, "\n c\n"),
        ]);
        assert_eq!(text, "# Title: \"Untitled\"\n**Status:** Unlocked\n\n---\n\n\n> a\n>\n> b\n\n c\n");
    }

    #[test]
    fn a_conversation_without_a_title_is_read_without_one_and_written_back_as_it_was() {
        let text = written(&[message(Role::User, "hi")]);
        let found = crate::read::all(&CycodTrajectory, text.as_bytes());
        assert_eq!(Outline::of(NAME, &found.events).stated_title, None);
        let outline = Outline::of(NAME, &found.events);
        assert_eq!(crate::write::all(&CycodTrajectory, &outline, &found.events), text.as_bytes());
    }

    #[test]
    fn blank_lines_return_with_their_original_bytes() {
        let fence = "```xml\n<function_calls>\n<invoke name=\"look\">\n</invoke>\n</function_calls>\n```\n";
        let source = format!("> a\n\r\n \t\n> b\n\n\r\n{fence}  \n> c\n\r\nd\n\t\r\n\r\n> e\n\n \n\n> f\n");
        let found = crate::read::all(&CycodTrajectory, source.as_bytes());
        assert_eq!(found.events.len(), 7);
        let outline = Outline::of("cycod-trajectory", &found.events);
        assert_eq!(String::from_utf8(write::all(&CycodTrajectory, &outline, &found.events)).unwrap(), source);
    }
}
