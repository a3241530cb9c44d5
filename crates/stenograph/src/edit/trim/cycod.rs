//! CycoD's own rule, step for step: long prompts are cut, long tool results are cut, and if the whole is still too large, every
//! tool result before the last answer is replaced. Lengths are UTF-16 units, as C# counts them; the whole is measured by the bytes
//! of the JSON that CycoD makes of its messages in memory. Nothing here is cleverer than CycoD.

use std::ops::Range;

use super::{Account, Limits, Manner, SNIP, Trimmed, went};
use crate::edit::Plan;
use crate::edit::change::{NewBody, Shortening};
use crate::edit::sketch::{Sketch, Sketches};
use crate::json::Object;
use crate::model::{Body, Content, Event, Kind, Role};
use crate::text::Text;

const BYTES_PER_TOKEN: u64 = 4;

/// Tool results of up to so many tokens stay when the whole is too large.
const SMALL_TOKENS: u64 = 10;

/// The sizes of events.
#[derive(Debug)]
pub(super) struct Sizes {
    limits: Limits,
    all: Vec<Size>,
}

/// The sizes of an event as it is, when its texts are cut, and when it is replaced. A record has at most some megabytes.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    now: Measure,
    cut: Measure,
    snipped: Measure,
}

/// How large an event is.
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
        let voice = voice(event.kind(), event.role());
        let now = if voice.is_some() { Measure::of(&event.body) } else { Measure::default() };
        let limit = match voice {
            Some(Voice::User) => self.limits.prompt,
            Some(Voice::Tool) => self.limits.tool,
            Some(Voice::System | Voice::Developer | Voice::Assistant) | None => 0,
        };
        let cut = if limit > 0 { Measure::of(&shortening(limit).of(&event.body)) } else { now };
        let snipped = match &event.body {
            Body::ToolResult { call, .. } => {
                let (call, content) = (call.clone(), Content::text(SNIP));
                Measure::of(&Body::ToolResult { call, name: None, content, error: None })
            }
            _ => now,
        };
        self.all.push(Size { now, cut, snipped });
    }

    /// Plans what CycoD would do.
    pub(super) fn trim(self, events: &Sketches) -> Trimmed {
        let (limits, sizes) = (self.limits, self.all);
        let now = sizes.iter().map(|size| size.now).collect();
        let plan = Plan::of_count(events.len());
        let mut work = Work { events, sizes, now, messages: messages(events), plan, went: Vec::new() };
        let before = work.tokens();
        if limits.prompt > 0 {
            work.cut(Voice::User, limits.prompt);
        }
        if limits.tool > 0 {
            work.cut(Voice::Tool, limits.tool);
        }
        if limits.chat > 0 && work.tokens() > limits.chat {
            work.replace_results();
        }
        let after = work.tokens();
        let mut account = Account { before, after, target: limits.chat, went: Vec::new() };
        work.went.sort_by_key(|(number, _)| *number);
        for (number, how) in &work.went {
            let was = work.sizes.get(*number).map_or(0, |size| size.now.bytes);
            let is = work.now.get(*number).map_or(0, |now| now.bytes);
            let tokens = u64::from(was.saturating_sub(is)) / BYTES_PER_TOKEN;
            account.went.extend(went(events, *number, *how, tokens));
        }
        Trimmed { plan: work.plan, account }
    }
}

/// How texts are cut that may have so many tokens.
fn shortening(tokens_max: u64) -> Shortening {
    let length_max = tokens_max.saturating_mul(BYTES_PER_TOKEN);
    Shortening::Units(usize::try_from(length_max.saturating_sub(SNIP.len() as u64)).unwrap_or(usize::MAX))
}

/// One message as CycoD holds it: the events of one record that are in one voice.
struct Message {
    voice: Voice,
    events: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

fn voice(kind: Kind, role: Option<Role>) -> Option<Voice> {
    match (kind, role) {
        (Kind::Message, Some(Role::System)) => Some(Voice::System),
        (Kind::Message, Some(Role::Developer)) => Some(Voice::Developer),
        (Kind::Message, Some(Role::User)) => Some(Voice::User),
        (Kind::Message, Some(Role::Assistant)) | (Kind::ToolCall, _) => Some(Voice::Assistant),
        (Kind::Message, Some(Role::Tool)) | (Kind::ToolResult, _) => Some(Voice::Tool),
        // CycoD drops what is in no role it knows, and has no place for the rest.
        (Kind::Message, Some(Role::Unknown) | None) | (Kind::Thinking | Kind::Compaction, _) => None,
        (Kind::Fact | Kind::Failure | Kind::Stop | Kind::Other, _) => None,
    }
}

/// The messages of the conversation that goes on.
fn messages(events: &Sketches) -> Vec<Message> {
    let mut found: Vec<Message> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let Some(voice) = voice(event.kind, event.role).filter(|_| events.is_told(number)) else { continue };
        match found.last_mut() {
            Some(last) if event.part > 0 && last.voice == voice && last.events.end == number => {
                last.events.end = number + 1;
            }
            _ => found.push(Message { voice, events: number..number + 1 }),
        }
    }
    found
}

struct Work<'a> {
    events: &'a Sketches,
    sizes: Vec<Size>,
    /// How large each event is by now.
    now: Vec<Measure>,
    messages: Vec<Message>,
    plan: Plan,
    /// The events that were changed, how last.
    went: Vec<(usize, Manner)>,
}

impl Work<'_> {
    /// How large the events of a message are by now.
    fn measures(&self, message: &Message) -> &[Measure] {
        self.now.get(message.events.clone()).unwrap_or_default()
    }

    /// The size of all messages, in tokens.
    fn tokens(&self) -> u64 {
        let message = |message: &Message| {
            let items = self.measures(message).iter().map(|item| u64::from(item.bytes)).filter(|size| *size > 0);
            let (count, sum) = items.fold((0_u64, 0), |(count, sum), size| (count + 1, sum + size));
            let role = match message.voice {
                Voice::System => "system",
                Voice::Developer => "developer",
                Voice::User => "user",
                Voice::Assistant => "assistant",
                Voice::Tool => "tool",
            };
            r#"{"role":"","contents":[]}"#.len() as u64 + role.len() as u64 + sum + count.saturating_sub(1)
        };
        self.messages.iter().map(message).sum::<u64>() / BYTES_PER_TOKEN
    }

    /// How many UTF-16 units the texts of a message have together.
    fn length(&self, message: &Message) -> u64 {
        self.measures(message).iter().map(|item| u64::from(item.units)).sum()
    }

    /// Cuts every text of each message in that voice that is longer than so many tokens.
    fn cut(&mut self, voice: Voice, tokens_max: u64) {
        let length_max = tokens_max.saturating_mul(BYTES_PER_TOKEN);
        let long = |message: &&Message| message.voice == voice && self.length(message) > length_max;
        let numbers: Vec<usize> =
            self.messages.iter().filter(long).flat_map(|message| message.events.clone()).collect();
        for number in numbers {
            self.plan.say_new(number, NewBody::Shortened(shortening(tokens_max)));
            self.measure(number, |size| size.cut);
            self.went.push((number, Manner::Cut));
        }
    }

    /// Replaces all results before the last answer that are not small.
    fn replace_results(&mut self) {
        let Some(last) = self.messages.iter().rposition(|message| message.voice == Voice::Assistant) else { return };
        let small = SMALL_TOKENS * BYTES_PER_TOKEN;
        let old = self.messages.iter().take(last).filter(|message| message.voice == Voice::Tool);
        let large = old.filter(|message| self.length(message) > small);
        let is_result =
            |number: &usize| self.events.get(*number).is_some_and(|event: &Sketch| event.kind == Kind::ToolResult);
        let numbers: Vec<usize> = large.flat_map(|message| message.events.clone()).filter(is_result).collect();
        let replaced: std::collections::HashSet<usize> = numbers.iter().copied().collect();
        self.went.retain(|(number, _)| !replaced.contains(number));
        for number in numbers {
            self.plan.say_content(number, Content::text(SNIP));
            self.measure(number, |size| size.snipped);
            self.went.push((number, Manner::Snipped));
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

/// The bytes of the JSON that CycoD makes of what an event says.
fn size(body: &Body<'_>) -> u64 {
    let constant = |json: &str| json.len() as u64;
    match body {
        Body::ToolCall { call, name, input } => {
            let arguments = input.to_text();
            let given = spelled_json(&arguments.decode()).map_or(0, |size| constant(r#","arguments":"#) + size);
            constant(r#"{"$type":"functionCall","callId":"","name":""}"#)
                + spelled(call.as_deref().unwrap_or_default())
                + spelled(name)
                + given
        }
        Body::ToolResult { call, content, .. } => {
            let texts: u64 = content.texts().map(|text| spelled(&text.decode())).sum();
            constant(r#"{"$type":"functionResult","callId":"","result":""}"#)
                + spelled(call.as_deref().unwrap_or_default())
                + texts
        }
        Body::Message { content, .. } => {
            let texts = content.texts().filter(|text| !text.is_empty());
            let sizes: Vec<u64> =
                texts.map(|text| constant(r#"{"$type":"text","text":""}"#) + spelled(&text.decode())).collect();
            sizes.iter().sum::<u64>() + (sizes.len() as u64).saturating_sub(1)
        }
        Body::Thinking { .. } | Body::Compaction { .. } | Body::Fact { .. } => 0,
        Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => 0,
    }
}

/// How many bytes a text has in JSON as .NET spells it: everything but the plainest ASCII is an escape.
fn spelled(text: &str) -> u64 {
    let size = |unit: u16| match char::from_u32(u32::from(unit)) {
        Some('\u{8}' | '\t' | '\n' | '\u{c}' | '\r' | '\\') => 2,
        Some('"' | '&' | '\'' | '+' | '<' | '>' | '`') => 6,
        Some(' '..='~') => 1,
        _ => 6,
    };
    text.encode_utf16().map(size).sum()
}

/// How many bytes a JSON object has when its strings are spelled so and no space is left; `None` when it is none.
fn spelled_json(json: &str) -> Option<u64> {
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
        size += 2 + Text::from_json(literal).map_or(0, |text| spelled(&text.decode()));
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    Some(size)
}

#[cfg(test)]
mod tests;
