//! CycoD's own rule, step for step: long prompts are cut, long tool results are cut, and if the whole is still too large, every
//! tool result before the last answer is replaced. Lengths are UTF-16 units, as C# counts them; the whole is measured by the bytes
//! of the JSON that CycoD makes of its messages in memory. Nothing here is cleverer than CycoD.

use std::ops::Range;

use super::{Account, Limits, Manner, SNIP, Trimmed, went, with_texts};
use crate::edit::{Fate, Plan};
use crate::json::Object;
use crate::model::{Body, Content, Event, Kind, Role, Spine};
use crate::text::Text;

const BYTES_PER_TOKEN: u64 = 4;

/// Tool results of up to so many tokens stay when the whole is too large.
const SMALL_TOKENS: u64 = 10;

/// Plans what CycoD would do.
pub(super) fn trim(events: &[Event<'_>], limits: Limits) -> Trimmed {
    let mut work = Work { events, messages: messages(events), plan: Plan::of(events), went: Vec::new() };
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
    for (number, how) in work.went {
        let was = events.get(number).map_or(0, |event| size(event));
        let is = match work.plan.fate(number) {
            Fate::Becomes(event) => size(event),
            Fate::Stays | Fate::Goes => 0,
        };
        account.went.extend(went(events, number, how, was.saturating_sub(is) / BYTES_PER_TOKEN));
    }
    Trimmed { plan: work.plan, account }
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

fn voice(event: &Event<'_>) -> Option<Voice> {
    match &event.body {
        Body::Message { role: Role::System, .. } => Some(Voice::System),
        Body::Message { role: Role::Developer, .. } => Some(Voice::Developer),
        Body::Message { role: Role::User, .. } => Some(Voice::User),
        Body::Message { role: Role::Assistant, .. } | Body::ToolCall { .. } => Some(Voice::Assistant),
        Body::Message { role: Role::Tool, .. } | Body::ToolResult { .. } => Some(Voice::Tool),
        // CycoD drops what is in no role it knows, and has no place for the rest.
        Body::Message { role: Role::Unknown, .. } | Body::Thinking { .. } | Body::Compaction { .. } => None,
        Body::Fact { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => None,
    }
}

/// The messages of the conversation that goes on.
fn messages(events: &[Event<'_>]) -> Vec<Message> {
    let mut spine = Spine::default();
    events.iter().for_each(|event| spine.add(event));
    spine.decide();
    let mut found: Vec<Message> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let told = spine.left_out(event).is_none();
        let Some(voice) = voice(event).filter(|_| told) else { continue };
        match found.last_mut() {
            Some(last) if event.part.index > 0 && last.voice == voice && last.events.end == number => {
                last.events.end = number + 1;
            }
            _ => found.push(Message { voice, events: number..number + 1 }),
        }
    }
    found
}

struct Work<'a> {
    events: &'a [Event<'a>],
    messages: Vec<Message>,
    plan: Plan,
    /// The events that were changed, how last.
    went: Vec<(usize, Manner)>,
}

impl Work<'_> {
    /// What an event says by now.
    fn now(&self, number: usize) -> Option<&Event<'_>> {
        match self.plan.fate(number) {
            Fate::Becomes(event) => Some(event),
            Fate::Stays | Fate::Goes => self.events.get(number),
        }
    }

    /// The size of all messages, in tokens.
    fn tokens(&self) -> u64 {
        let message = |message: &Message| {
            let items: Vec<u64> = message.events.clone().filter_map(|number| self.now(number)).map(size).collect();
            let commas = (items.iter().filter(|size| **size > 0).count() as u64).saturating_sub(1);
            let role = match message.voice {
                Voice::System => "system",
                Voice::Developer => "developer",
                Voice::User => "user",
                Voice::Assistant => "assistant",
                Voice::Tool => "tool",
            };
            r#"{"role":"","contents":[]}"#.len() as u64 + role.len() as u64 + items.iter().sum::<u64>() + commas
        };
        self.messages.iter().map(message).sum::<u64>() / BYTES_PER_TOKEN
    }

    /// How many UTF-16 units the texts of a message have together.
    fn length(&self, message: &Message) -> u64 {
        let events = message.events.clone().filter_map(|number| self.now(number));
        events.filter_map(Event::content).flat_map(Content::texts).map(|text| units(&text.decode())).sum()
    }

    /// Cuts every text of each message in that voice that is longer than so many tokens.
    fn cut(&mut self, voice: Voice, tokens_max: u64) {
        let length_max = tokens_max.saturating_mul(BYTES_PER_TOKEN);
        let kept = usize::try_from(length_max.saturating_sub(SNIP.len() as u64)).unwrap_or(usize::MAX);
        let long = |message: &&Message| message.voice == voice && self.length(message) > length_max;
        let numbers: Vec<usize> =
            self.messages.iter().filter(long).flat_map(|message| message.events.clone()).collect();
        for number in numbers {
            let Some(event) = self.events.get(number).filter(|event| event.content().is_some()) else { continue };
            let body = with_texts(&event.body, |text| cut(text, kept));
            self.plan.say(number, event, body);
            self.went.push((number, Manner::Cut));
        }
    }

    /// Replaces all results before the last answer that are not small.
    fn replace_results(&mut self) {
        let Some(last) = self.messages.iter().rposition(|message| message.voice == Voice::Assistant) else { return };
        let small = SMALL_TOKENS * BYTES_PER_TOKEN;
        let old = self.messages.iter().take(last).filter(|message| message.voice == Voice::Tool);
        let large = old.filter(|message| self.length(message) > small);
        let numbers: Vec<usize> = large.flat_map(|message| message.events.clone()).collect();
        for number in numbers {
            let Some(event) = self.events.get(number).filter(|event| event.kind() == Kind::ToolResult) else {
                continue;
            };
            let body = event.body.clone().into_owned().with_content(Content::text(SNIP));
            self.plan.say(number, event, body);
            self.went.retain(|(event, _)| *event != number);
            self.went.push((number, Manner::Snipped));
        }
    }
}

/// The first units of a text and the mark. C# may cut a character in two; on its way to disk the half becomes U+FFFD.
fn cut(text: &Text<'_>, kept: usize) -> String {
    let units: Vec<u16> = text.decode().encode_utf16().take(kept).collect();
    String::from_utf16_lossy(&units) + SNIP
}

fn units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// The bytes of the JSON that CycoD makes of what an event says.
fn size(event: &Event<'_>) -> u64 {
    let constant = |json: &str| json.len() as u64;
    match &event.body {
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
