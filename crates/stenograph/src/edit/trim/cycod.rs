//! The rule of CycoD, step by step: cuts long prompts, cuts long tool results, and if the conversation is still too large, replaces
//! every tool result before the last answer. Lengths are UTF-16 units, as C# counts them; the size of the conversation is the number
//! of bytes of the JSON that CycoD makes of its messages in memory. The rule copies CycoD, including its flaws.

use std::ops::Range;

use super::{Limits, SNIP, TrimAction, TrimReport, Trimmed, trimmed_event};
use crate::edit::Plan;
use crate::edit::change::{NewBody, Shortening};
use crate::edit::sketch::{Sketch, Sketches};
use crate::edit::tokens::BYTES_PER_TOKEN;
use crate::json::Object;
use crate::model::{Body, Content, Event, Kind, Role};
use crate::text::Text;

/// Tool results of up to this many tokens are not replaced.
const SMALL_TOKENS: u64 = 10;

/// The sizes of events.
#[derive(Debug)]
pub(super) struct Sizes {
    limits: Limits,
    all: Vec<Size>,
}

/// The sizes of an event: as it is, with cut texts, and replaced.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    whole: Measure,
    cut: Measure,
    snipped: Measure,
}

/// The size of an event. A record is at most 32 MiB long, so that the numbers fit.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    /// The bytes of the JSON that CycoD makes of it.
    bytes: u32,
    /// The UTF-16 units of its texts.
    units: u32,
}

impl Measure {
    fn of(body: &Body<'_>) -> Measure {
        let texts = body.content().into_iter().flat_map(Content::texts);
        let units: u64 = texts.map(|text| units(&text.decode())).sum();
        let small = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        Measure { bytes: small(size(body)), units: small(units) }
    }
}

impl Sizes {
    pub(super) fn new(limits: Limits) -> Sizes {
        Sizes { limits, all: Vec::new() }
    }

    /// Measures the next event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let speaker = speaker(event.kind(), event.role());
        let whole = if speaker.is_some() { Measure::of(&event.body) } else { Measure::default() };
        let limit = match speaker {
            Some(Speaker::User) => self.limits.prompt,
            Some(Speaker::Tool) => self.limits.tool,
            Some(Speaker::System | Speaker::Developer | Speaker::Assistant) | None => 0,
        };
        let cut = if limit > 0 { Measure::of(&shortening(limit).of(&event.body)) } else { whole };
        let snipped = match &event.body {
            Body::ToolResult { call, .. } => {
                let (call, content) = (call.clone(), Content::text(SNIP));
                Measure::of(&Body::ToolResult { call, name: None, content, error: None })
            }
            _ => whole,
        };
        self.all.push(Size { whole, cut, snipped });
    }

    /// Plans the trim as CycoD does it.
    pub(super) fn trim(self, events: &Sketches) -> Trimmed {
        let (limits, sizes) = (self.limits, self.all);
        let now = sizes.iter().map(|size| size.whole).collect();
        let plan = Plan::of_count(events.len());
        let mut trimmer = Trimmer { events, sizes, now, messages: messages(events), plan, actions: Vec::new() };
        let before = trimmer.tokens();
        if limits.prompt > 0 {
            trimmer.cut(Speaker::User, limits.prompt);
        }
        if limits.tool > 0 {
            trimmer.cut(Speaker::Tool, limits.tool);
        }
        if limits.chat > 0 && trimmer.tokens() > limits.chat {
            trimmer.replace_results();
        }
        let after = trimmer.tokens();
        let mut report = TrimReport { before, after, target: limits.chat, trimmed: Vec::new() };
        trimmer.actions.sort_by_key(|(number, _)| *number);
        for (number, action) in &trimmer.actions {
            let before = trimmer.sizes.get(*number).map_or(0, |size| i64::from(size.whole.bytes));
            let after = trimmer.now.get(*number).map_or(0, |now| i64::from(now.bytes));
            let saved = (before - after) / BYTES_PER_TOKEN.cast_signed();
            report.trimmed.extend(trimmed_event(events, *number, *action, saved));
        }
        Trimmed { plan: trimmer.plan, report }
    }
}

/// How a text is cut to this many tokens.
fn shortening(tokens_max: u64) -> Shortening {
    let length_max = tokens_max.saturating_mul(BYTES_PER_TOKEN);
    Shortening::Units(usize::try_from(length_max.saturating_sub(SNIP.len() as u64)).unwrap_or(usize::MAX))
}

/// A message in the memory of CycoD: the events of one record with the same speaker.
struct Message {
    speaker: Speaker,
    events: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

fn speaker(kind: Kind, role: Option<Role>) -> Option<Speaker> {
    match (kind, role) {
        (Kind::Message, Some(Role::System)) => Some(Speaker::System),
        (Kind::Message, Some(Role::Developer)) => Some(Speaker::Developer),
        (Kind::Message, Some(Role::User)) => Some(Speaker::User),
        (Kind::Message, Some(Role::Assistant)) | (Kind::ToolCall, _) => Some(Speaker::Assistant),
        (Kind::Message, Some(Role::Tool)) | (Kind::ToolResult, _) => Some(Speaker::Tool),
        // CycoD drops messages in unknown roles, and has no place for the other kinds.
        (Kind::Message, Some(Role::Unknown) | None) | (Kind::Thinking | Kind::Compaction, _) => None,
        (Kind::Fact | Kind::Failure | Kind::Stop | Kind::Other, _) => None,
    }
}

/// The messages of the spine.
fn messages(events: &Sketches) -> Vec<Message> {
    let mut found: Vec<Message> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let Some(speaker) = speaker(event.kind, event.role).filter(|_| events.is_in_spine(number)) else { continue };
        match found.last_mut() {
            Some(last) if event.part > 0 && last.speaker == speaker && last.events.end == number => {
                last.events.end = number + 1;
            }
            _ => found.push(Message { speaker, events: number..number + 1 }),
        }
    }
    found
}

struct Trimmer<'a> {
    events: &'a Sketches,
    sizes: Vec<Size>,
    /// The size of each event now.
    now: Vec<Measure>,
    messages: Vec<Message>,
    plan: Plan,
    /// The changed events, each with the last action.
    actions: Vec<(usize, TrimAction)>,
}

impl Trimmer<'_> {
    /// The sizes of the events of a message now.
    fn measures(&self, message: &Message) -> &[Measure] {
        self.now.get(message.events.clone()).unwrap_or_default()
    }

    /// The size of all messages, in tokens.
    fn tokens(&self) -> u64 {
        let message = |message: &Message| {
            let items = self.measures(message).iter().map(|item| u64::from(item.bytes)).filter(|size| *size > 0);
            let (count, sum) = items.fold((0_u64, 0), |(count, sum), size| (count + 1, sum + size));
            let role = match message.speaker {
                Speaker::System => "system",
                Speaker::Developer => "developer",
                Speaker::User => "user",
                Speaker::Assistant => "assistant",
                Speaker::Tool => "tool",
            };
            r#"{"role":"","contents":[]}"#.len() as u64 + role.len() as u64 + sum + count.saturating_sub(1)
        };
        self.messages.iter().map(message).sum::<u64>() / BYTES_PER_TOKEN
    }

    /// The UTF-16 units of all texts of a message.
    fn length(&self, message: &Message) -> u64 {
        self.measures(message).iter().map(|item| u64::from(item.units)).sum()
    }

    /// Cuts every text of each message of this speaker that is longer than this many tokens.
    fn cut(&mut self, speaker: Speaker, tokens_max: u64) {
        let length_max = tokens_max.saturating_mul(BYTES_PER_TOKEN);
        let long = |message: &&Message| message.speaker == speaker && self.length(message) > length_max;
        let numbers: Vec<usize> =
            self.messages.iter().filter(long).flat_map(|message| message.events.clone()).collect();
        for number in numbers {
            self.plan.set_body(number, NewBody::Shortened(shortening(tokens_max)));
            self.measure(number, |size| size.cut);
            self.actions.push((number, TrimAction::Cut));
        }
    }

    /// Replaces all larger results before the last answer.
    fn replace_results(&mut self) {
        let Some(last) = self.messages.iter().rposition(|message| message.speaker == Speaker::Assistant) else {
            return;
        };
        let small = SMALL_TOKENS * BYTES_PER_TOKEN;
        let old = self.messages.iter().take(last).filter(|message| message.speaker == Speaker::Tool);
        let large = old.filter(|message| self.length(message) > small);
        let is_result =
            |number: &usize| self.events.get(*number).is_some_and(|event: &Sketch| event.kind == Kind::ToolResult);
        let numbers: Vec<usize> = large.flat_map(|message| message.events.clone()).filter(is_result).collect();
        let replaced: std::collections::HashSet<usize> = numbers.iter().copied().collect();
        self.actions.retain(|(number, _)| !replaced.contains(number));
        for number in numbers {
            self.plan.replace_content(number, Content::text(SNIP));
            self.measure(number, |size| size.snipped);
            self.actions.push((number, TrimAction::Snipped));
        }
    }

    fn measure(&mut self, number: usize, which: impl Fn(&Size) -> Measure) {
        if let (Some(now), Some(size)) = (self.now.get_mut(number), self.sizes.get(number)) {
            *now = which(size);
        }
    }
}

fn units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// The bytes of the JSON that CycoD makes of an event.
fn size(body: &Body<'_>) -> u64 {
    let constant = |json: &str| json.len() as u64;
    match body {
        Body::ToolCall { call, name, input } => {
            let arguments = input.to_text();
            let given = json_size(&arguments.decode()).map_or(0, |size| constant(r#","arguments":"#) + size);
            constant(r#"{"$type":"functionCall","callId":"","name":""}"#)
                + escaped_size(call.as_deref().unwrap_or_default())
                + escaped_size(name)
                + given
        }
        Body::ToolResult { call, content, .. } => {
            let texts: u64 = content.texts().map(|text| escaped_size(&text.decode())).sum();
            constant(r#"{"$type":"functionResult","callId":"","result":""}"#)
                + escaped_size(call.as_deref().unwrap_or_default())
                + texts
        }
        Body::Message { content, .. } => {
            let texts = content.texts().filter(|text| !text.is_empty());
            let sizes: Vec<u64> =
                texts.map(|text| constant(r#"{"$type":"text","text":""}"#) + escaped_size(&text.decode())).collect();
            sizes.iter().sum::<u64>() + (sizes.len() as u64).saturating_sub(1)
        }
        Body::Thinking { .. } | Body::Compaction { .. } | Body::Fact { .. } => 0,
        Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => 0,
    }
}

/// The bytes of a text in JSON as .NET writes it: it escapes everything except plain ASCII.
fn escaped_size(text: &str) -> u64 {
    let size = |unit: u16| match char::from_u32(u32::from(unit)) {
        Some('\u{8}' | '\t' | '\n' | '\u{c}' | '\r' | '\\') => 2,
        Some('"' | '&' | '\'' | '+' | '<' | '>' | '`') => 6,
        Some(' '..='~') => 1,
        _ => 6,
    };
    text.encode_utf16().map(size).sum()
}

/// The bytes of a JSON object whose strings .NET writes, without spaces; `None` if it is not an object.
fn json_size(json: &str) -> Option<u64> {
    Object::parse(json)?;
    let mut size = 0;
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        if first != '"' {
            size += u64::from(!first.is_ascii_whitespace());
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        let literal = rest.get(..end + 2)?;
        size += 2 + Text::from_json(literal).map_or(0, |text| escaped_size(&text.decode()));
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    Some(size)
}

#[cfg(test)]
mod tests;
