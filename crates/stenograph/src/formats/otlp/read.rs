//! Reads exports. A model call repeats its whole history: the reader remembers what was said in each conversation, as fingerprints,
//! and marks what repeats it.

use std::borrow::Cow;
use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::attributes::Attributes;
use super::messages::{self, CONTENTS, Said};
use super::{EXPORT, INFO, NAME, RESOURCE, SCOPE, SIGNALS, Signal, flat};
use crate::json::{Object, items, word};
use crate::model::{Body, Content, Dollars, Event, Extra, ExtraFields, Held, Input, NoteKind, Usage};
use crate::read::{At, Objects, Sink};
use crate::text::{Str, Text};
use crate::time::{Time, TimeUnit};

/// How many fingerprints are remembered. A long conversation has some thousands of messages.
const SAID_MAX: usize = 1 << 20;

/// Operations that are one model call each.
const CALLS: [&str; 4] = ["chat", "generate_content", "text_completion", "LLM"];

/// The attributes with the operation.
const OPERATION: [&str; 2] = ["gen_ai.operation.name", "openinference.span.kind"];

const SESSION: [&str; 2] = ["gen_ai.conversation.id", "session.id"];

const MODEL: [&str; 3] = ["gen_ai.response.model", "gen_ai.request.model", "llm.model_name"];

/// Reads one line at a time.
#[derive(Debug, Default)]
pub struct OtlpReader {
    /// How often each statement occurred in a model call of its conversation.
    said: HashMap<u64, u32>,
}

/// The events of a line, and what is wrong with it.
#[derive(Debug, Default)]
struct Line {
    events: Vec<Event<'static>>,
    unread: u64,
}

impl Objects for OtlpReader {
    fn object(&mut self, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let signal = SIGNALS.iter().find(|signal| object.has(signal.resources));
        let mut line = Line::default();
        if signal.is_none_or(|signal| self.export(signal, object.clone(), &mut line).is_none()) {
            let name = object.keys().next().map(str::to_owned);
            return at.emit_unknown(&INFO, name.as_deref(), object, out);
        }
        if line.unread > 0 {
            let text = format!("attributes with messages of an unknown form: {}", line.unread);
            at.note(NoteKind::UnknownType, text, out);
        }
        if self.said.len() >= SAID_MAX {
            self.said.clear();
            at.note(NoteKind::Ambiguous, "too many messages to tell which ones repeat earlier messages", out);
        }
        at.emit(&mut line.events, out);
    }
}

/// Takes a list of objects that is not empty. A list with another element is no such list.
fn objects<'a>(object: &mut Object<'a>, key: &str) -> Option<Vec<Object<'a>>> {
    let Some(raw) = object.peek(key) else { return Some(Vec::new()) };
    let list: Vec<Object<'a>> = items(raw)?.into_iter().map(Object::parse).collect::<Option<_>>()?;
    if !list.is_empty() {
        object.take(key);
    }
    Some(list)
}

fn fact(name: &'static str, object: Object<'_>) -> Event<'static> {
    let extra = Extra::of(&INFO, object.into_extra());
    Event { extra, ..Event::new(Body::Fact { fact: name.into(), content: None }) }.into_owned()
}

impl OtlpReader {
    fn export(&mut self, signal: &Signal, mut export: Object<'_>, line: &mut Line) -> Option<()> {
        let resources = objects(&mut export, signal.resources)?;
        line.events.push(fact(EXPORT, export));
        for mut resource in resources {
            let scopes = objects(&mut resource, signal.scopes)?;
            line.events.push(fact(RESOURCE, resource));
            for mut scope in scopes {
                let items = objects(&mut scope, signal.items)?;
                line.events.push(fact(SCOPE, scope));
                items.into_iter().for_each(|item| self.item(signal, item, line));
            }
        }
        Some(())
    }

    /// A span or a log record: a fact, and the events of its messages.
    fn item(&mut self, signal: &Signal, mut item: Object<'_>, line: &mut Line) {
        let attributes = Attributes::of(&item);
        let operation = attributes.word(&OPERATION);
        let is_call = operation.as_deref().is_some_and(|operation| CALLS.contains(&operation));
        let trace = item.peek("traceId").and_then(word);
        let session = attributes.word(&SESSION).or(trace);
        let conversation = xxh3_64(session.as_deref().unwrap_or_default().as_bytes());
        let mut events = Vec::new();
        let mut blanks: Vec<(&str, &str)> = Vec::new();
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for (key, said) in CONTENTS {
            let Some(text) = attributes.text(key).and_then(Text::exact).filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            let Some((read, spelling)) = messages::read(key, said, &text) else {
                line.unread += 1;
                continue;
            };
            blanks.push((key, spelling.blank()));
            self.add(read, is_call && said == Said::Output, conversation, &mut counts, &mut events);
        }
        let flat = flat::read(&attributes);
        line.unread += u64::from(flat.is_none());
        let is_flat = flat.is_some();
        for (said, read) in flat.unwrap_or_default() {
            self.add(read, is_call && said == Said::Output, conversation, &mut counts, &mut events);
        }
        if operation.as_deref() == Some("execute_tool") && events.is_empty() {
            self.tool(&attributes, &item, conversation, &mut blanks, &mut events);
        }
        for (statement, count) in counts {
            let said = self.said.entry(statement).or_default();
            *said = count.max(*said);
        }
        let list = attributes.with_texts(&|key, raw| {
            let blank = blanks.iter().find(|(name, _)| *name == key).map(|(_, blank)| (*blank).to_owned());
            blank.or_else(|| (is_flat && flat::is_taken(key, raw)).then(String::new))
        });
        let (model, usage) = (attributes.word(&MODEL), usage(&attributes).filter(|_| is_call));
        let group = attributes.word(&["gen_ai.response.id"]);
        let from = attributes.word(&["gen_ai.agent.name"]);
        let stop = attributes.word(&["llm.finish_reason"]);
        let (start, end) = (
            time(&item, &["startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"]),
            time(&item, &["endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"]),
        );
        let id = item.peek("spanId").and_then(word);
        let mut fields = ExtraFields::default();
        if item.has("attributes") {
            item.take("attributes");
            fields = item.into_extra();
            if let Some(held) = fields.held_mut("attributes") {
                *held = Held::Raw(Cow::Owned(list));
            }
        } else {
            fields.0.extend(item.into_extra().0);
        }
        let head = Body::Fact { fact: signal.fact.into(), content: None };
        let mut found = vec![(false, Event { extra: Extra::of(&INFO, fields.into_owned()), ..Event::new(head) })];
        found.append(&mut events);
        let first_answer = found.iter().position(|(is_answer, _)| *is_answer).unwrap_or(0);
        let own = |text: &Option<Str<'_>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
        for (at, (is_answer, event)) in found.iter_mut().enumerate() {
            event.session = own(&session);
            event.id = own(&id);
            event.time = if *is_answer || at == 0 { end.clone() } else { start.clone() };
            event.from = own(&from);
            if *is_answer || at == first_answer {
                event.model = own(&model);
                event.group = own(&group);
                event.stop_reason = own(&stop);
            }
            event.usage = usage.filter(|_| at == first_answer);
        }
        line.events.extend(found.into_iter().map(|(_, event)| event.into_owned()));
    }

    /// Adds the events of messages; those of a history that were said before repeat it.
    fn add(
        &self,
        read: Vec<Event<'static>>,
        is_answer: bool,
        conversation: u64,
        counts: &mut HashMap<u64, u32>,
        events: &mut Vec<(bool, Event<'static>)>,
    ) {
        for mut event in read {
            let statement = statement(&event, conversation);
            let count = counts.entry(statement).or_default();
            *count += 1;
            event.restates = !is_answer && self.said.get(&statement).is_some_and(|said| said >= count);
            events.push((is_answer, event));
        }
    }

    /// Adds the call and the result of a tool. A model call may have said either before.
    fn tool(
        &mut self,
        attributes: &Attributes<'_>,
        item: &Object<'_>,
        conversation: u64,
        blanks: &mut Vec<(&'static str, &'static str)>,
        events: &mut Vec<(bool, Event<'static>)>,
    ) {
        let own = |key: &str| attributes.word(&[key]).map(|text| Cow::Owned(text.into_owned()));
        let (call, name) = (own("gen_ai.tool.call.id"), own("gen_ai.tool.name"));
        let text = |key: &str| attributes.text(key).map(Text::into_owned).filter(|text| !text.is_empty());
        let failed = item.peek_object("status").and_then(|status| status.peek("code").and_then(word));
        let error = matches!(failed.as_deref(), Some("STATUS_CODE_ERROR" | "2")).then_some(true);
        let mut said = 0;
        if let (Some(input), Some(name)) = (text(TOOL_ARGUMENTS), name.clone()) {
            blanks.push((TOOL_ARGUMENTS, ""));
            let event = Event::new(Body::ToolCall { call: call.clone(), name, input: Input::from_text(input) });
            let count = self.said.entry(statement(&event, conversation)).or_default();
            let restates = *count > 0;
            *count = (*count).max(1);
            said = *count;
            events.push((false, Event { restates, extra: Extra::of(&INFO, ExtraFields::default()), ..event }));
        }
        if let Some(content) = text(TOOL_RESULT) {
            blanks.push((TOOL_RESULT, ""));
            let event = Event::new(Body::ToolResult { call, name, content: Content::Text(content), error });
            let count = self.said.entry(statement(&event, conversation)).or_default();
            // A call id may come again in a later turn.
            let restates = *count > 0 && *count >= said;
            *count += u32::from(!restates);
            events.push((false, Event { restates, extra: Extra::of(&INFO, ExtraFields::default()), ..event }));
        }
    }
}

/// The attributes of a tool's call.
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";

/// The fingerprint of what an event says in its conversation. Calls and results are known by the id of the call.
fn statement(event: &Event<'_>, conversation: u64) -> u64 {
    let role = event.role().map_or("", crate::model::Role::name);
    let what = match (event.call(), &event.body) {
        (Some(call), _) => call.to_owned(),
        (None, Body::ToolCall { name, input, .. }) => format!("{name} {}", input.to_json()),
        (None, Body::Other { .. }) => event.extra.get(NAME).map_or_else(String::new, |extra| {
            let mut json = String::new();
            extra.write_json(&mut json);
            json
        }),
        (None, _) => event.text(),
    };
    xxh3_64(format!("{conversation:x} {} {role} {what}", event.kind().name()).as_bytes())
}

fn time(item: &Object<'_>, keys: &[&str]) -> Option<Time<'static>> {
    let nanos: u64 = keys.iter().find_map(|key| word(item.peek(key)?)?.parse().ok())?;
    Time::number(Cow::Owned((nanos / 1_000_000).to_string()), TimeUnit::Millis).filter(|_| nanos > 0)
}

/// The usage of a model call. Its input includes tokens of a cache. Counters that contradict each other are no usage.
fn usage(attributes: &Attributes<'_>) -> Option<Usage> {
    let count = |keys: &[&str]| attributes.word(keys)?.parse::<u64>().ok();
    let cache_read = count(&["gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"]);
    let cache_write =
        count(&["gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"]);
    let all = count(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"]);
    let input = match all {
        Some(all) => Some(all.checked_sub(cache_read.unwrap_or(0).checked_add(cache_write.unwrap_or(0))?)?),
        None => None,
    };
    let usage = Usage {
        input,
        output: count(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"]),
        cache_read,
        cache_write,
        reasoning: count(&["gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"]),
        cost: attributes.word(&["llm.cost.total"]).and_then(|cost| Dollars::spelled(&cost)),
        ..Usage::default()
    };
    usage.stated()
}
