//! ShareGPT: conversations for training, one per line or in one array. See `README.md` beside this file.

use std::borrow::Cow;

use super::record_map::{
    ErrorAt, MappedFormat, MappedPlace, MarkedText, PartMap, RecordMap, RecordsMap, ResultMap, Speaks, TEXT, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::json::{Object, items};
use crate::model::{Body, Content, Input, Role};
use crate::text::quote;

static INFO: FormatInfo = FormatInfo {
    name: "sharegpt",
    agent: "sharegpt",
    title: "ShareGPT's conversations for training",
    framing: Framing::LinesOrItems(Items::Elements),
    extension: "jsonl",
    spec: "LLaMA-Factory, data/README.md, and Axolotl, conversation formats: ShareGPT",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    is_never_edited: true,
    ..FormatInfo::BLANK
};

/// The format `sharegpt`.
pub static SHAREGPT: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => None,
        // A record without conversations is unknown.
        MappedPlace::Record => word("from").is_none().then_some(&CONVERSATION),
    }
}

static HEAD: RecordMap = RecordMap { parts: &[PartMap::Stated("session")], ..RecordMap::NONE };

static CONVERSATION: RecordMap = RecordMap {
    parts: &[
        PartMap::StatedAt("conversation", "conversations"),
        PartMap::Content("system", TEXT),
        PartMap::Records("conversations", RecordsMap { kind: "from", map_of: message }),
    ],
    speaks: Speaks::As(Role::System),
    ..RecordMap::NONE
};

fn message(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("from")?.as_str() {
        "system" => Some(&SYSTEM),
        "human" | "user" => Some(&USER),
        "gpt" | "assistant" | "bot" | "chatgpt" | "model" => Some(&ASSISTANT),
        "function_call" => Some(&CALL),
        "observation" | "tool" | "function_response" => Some(&RESULT),
        _ => None,
    }
}

const MESSAGE: RecordMap = RecordMap { parts: &[PartMap::Content("value", TEXT)], ..RecordMap::NONE };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };

static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Marked("value", MarkedText { split: call, join: call_text })],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap { call: "", name: "", content: "value", texts: TEXT, error: ErrorAt::Nowhere })],
    ..RecordMap::NONE
};

/// The call in the text of a message.
fn call(text: &str) -> Vec<Body<'static>> {
    let read = || {
        let object = Object::parse(text)?;
        let name = object.peek_str("name")?.into_owned();
        let input = Input::Json(Cow::Owned(object.peek("arguments")?.to_owned()));
        Some(Body::ToolCall { call: None, name: Cow::Owned(name), input })
    };
    let message = || Body::Message { role: Role::Assistant, content: Content::text(text.to_owned()) };
    vec![read().unwrap_or_else(message)]
}

fn call_text(bodies: &[&Body<'_>]) -> String {
    let text = |body: &&Body<'_>| match body {
        Body::ToolCall { name, input, .. } => {
            format!("{{\"name\": {}, \"arguments\": {}}}", quote(name), input.to_json())
        }
        body => body.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default(),
    };
    bodies.iter().map(text).collect()
}

fn sniff(head: &Head<'_>) -> Sniff {
    let mut objects = head.objects();
    if objects.is_empty() {
        objects = head.elements();
    }
    let is_conversation = |object: &Object<'_>| {
        let first = object.peek("conversations").and_then(items);
        let first = first.and_then(|list| list.first().copied()).and_then(Object::parse);
        first.is_some_and(|first| first.has("from") && first.has("value"))
    };
    if objects.first().is_some_and(is_conversation) { Sniff::Certain } else { Sniff::No }
}
