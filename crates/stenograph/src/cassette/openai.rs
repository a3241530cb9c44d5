//! OpenAI's Chat Completions API: reads requests, and writes answers as a whole and as a stream. The API has no place for thoughts. It
//! does not select answers.

use super::chat_item::{ChatItem, GAP};
use super::tape::{Answer, Stop, Tape};
use super::vendor::{Delivery, Form, Frames, Request, StreamFrame, Trouble, deltas, id, model, number};
use crate::formats::chat;
use crate::json::{Draft, Object, items};
use crate::model::{Body, FormatInfo, Input, Tokens};
use crate::text::quote;

/// The format of the messages in a request.
static API: FormatInfo = FormatInfo { name: "api", ..FormatInfo::BLANK };

/// Reads a request.
pub(super) fn request(object: &Object<'_>) -> Result<Request, String> {
    let list = object.peek("messages").and_then(items).ok_or("messages: must be a list")?;
    let mut conversation = Vec::with_capacity(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        for event in chat::element(raw, &API) {
            if let Body::Other { .. } = event.body {
                return Err(format!("messages[{at}]: must be a message with a role and a content"));
            }
            conversation.extend(ChatItem::of(&event.body, event.call().unwrap_or_default()));
        }
    }
    let options = object.peek("stream_options").and_then(Object::parse);
    let delivery = match (object.peek_true("stream"), options.is_some_and(|options| options.peek_true("include_usage")))
    {
        (false, _) => Delivery::Whole,
        (true, false) => Delivery::Streamed,
        (true, true) => Delivery::StreamedWithUsage,
    };
    let tools = object.peek("tools").and_then(items).unwrap_or_default();
    let tool = |raw: &str| {
        let tool = Object::parse(raw)?;
        let inner = tool.peek("function").or_else(|| tool.peek("custom")).and_then(Object::parse)?;
        inner.peek_str("name").map(String::from)
    };
    let tools = tools.into_iter().filter_map(tool).collect();
    let form = Form::stated(object.peek("response_format"));
    let model = object.peek_str("model").map(String::from);
    let tokens_max = number(object, "max_completion_tokens").or(number(object, "max_tokens"));
    Ok(Request { model, delivery, conversation, tools, form, tokens_max, prompts: Vec::new(), injected: Vec::new() })
}

/// An answer as one object.
pub(super) fn whole(answer: &Answer, request: &Request) -> String {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in &answer.blocks {
        match &block.item {
            ChatItem::Message { text, .. } => texts.push(text.as_str()),
            ChatItem::Call { id, name, input } => calls.push(call(id, name, input)),
            ChatItem::Thinking { .. } | ChatItem::Result { .. } => {}
        }
    }
    let mut message = Draft::new();
    message.set_str("role", "assistant");
    // A message with calls only has no content; an empty message has an empty content.
    let content = if texts.is_empty() && !calls.is_empty() { "null".to_owned() } else { quote(&texts.join(GAP)) };
    message.set("content", content);
    message.set("refusal", "null");
    message.set("annotations", "[]");
    if !calls.is_empty() {
        message.set("tool_calls", format!("[{}]", calls.join(",")));
    }
    let mut choice = Draft::new();
    choice.set("index", "0");
    choice.nest("message", message);
    choice.set("logprobs", "null");
    choice.set_str("finish_reason", finish(answer.stop));
    let mut draft = head(answer, request, "chat.completion");
    draft.set("choices", format!("[{}]", choice.render(None)));
    draft.set("usage", usage(answer));
    draft.set_str("service_tier", "default");
    draft.set("system_fingerprint", "null");
    draft.render(None)
}

/// An answer as the events of a stream.
pub(super) fn frames(answer: &Answer, request: &Request) -> Vec<StreamFrame> {
    let chunk = |delta: &str, finish: &str| {
        let choice = format!("[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]");
        frame(answer, request, &choice, "null")
    };
    let mut frames = Frames::default();
    frames.push(chunk("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null"));
    let (mut texts, mut calls) = (0, 0);
    for block in &answer.blocks {
        let mut pieces = Vec::new();
        match &block.item {
            ChatItem::Message { text, .. } => {
                let gap = if texts > 0 { GAP } else { "" };
                texts += 1;
                let text = format!("{gap}{text}");
                pieces.extend(deltas(&text).into_iter().map(|piece| format!("{{\"content\":{}}}", quote(piece))));
            }
            ChatItem::Call { id, name, input } => {
                let (id, name, index) = (quote(id), quote(name), calls);
                calls += 1;
                pieces.push(format!(
                    "{{\"tool_calls\":[{{\"index\":{index},\"id\":{id},\"type\":\"function\",\
                     \"function\":{{\"name\":{name},\"arguments\":\"\"}}}}]}}"
                ));
                let argument = |piece: &str| {
                    let piece = quote(piece);
                    format!("{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":{piece}}}}}]}}")
                };
                pieces.extend(deltas(&input.to_object()).into_iter().map(argument));
            }
            ChatItem::Thinking { .. } | ChatItem::Result { .. } => {}
        }
        frames.block(pieces.iter().map(|delta| chunk(delta, "null")).collect(), block.after_ms);
    }
    frames.push(chunk("{}", &quote(finish(answer.stop))));
    if request.delivery == Delivery::StreamedWithUsage {
        frames.push(frame(answer, request, "[]", &usage(answer)));
    }
    frames.push("data: [DONE]\n\n".to_owned());
    frames.finish()
}

fn frame(answer: &Answer, request: &Request, choices: &str, usage: &str) -> String {
    let mut draft = head(answer, request, "chat.completion.chunk");
    draft.set_str("service_tier", "default");
    draft.set("system_fingerprint", "null");
    draft.set("choices", choices.to_owned());
    if request.delivery == Delivery::StreamedWithUsage {
        draft.set("usage", usage.to_owned());
    }
    format!("data: {}\n\n", draft.render(None))
}

fn head(answer: &Answer, request: &Request, object: &str) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_str("id", &id(answer, "chatcmpl-"));
    draft.set_str("object", object);
    draft.set("created", answer.time_seconds.unwrap_or_default().to_string());
    draft.set_str("model", model(answer, request));
    draft
}

fn call(id: &str, name: &str, input: &Input<'_>) -> String {
    let mut function = Draft::new();
    function.set_str("name", name);
    function.set_str("arguments", &input.to_object());
    let mut draft = Draft::new();
    draft.set_str("id", id);
    draft.set_str("type", "function");
    draft.nest("function", function);
    draft.render(None)
}

fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::Tools => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
    }
}

/// The usage. A missing count is 0, because the API requires a number.
fn usage(answer: &Answer) -> String {
    let Counts { input, output, total, cached, reasoning } = Counts::of(answer);
    format!(
        "{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\"total_tokens\":{total},\
         \"prompt_tokens_details\":{{\"cached_tokens\":{cached},\"audio_tokens\":0}},\
         \"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning},\"audio_tokens\":0,\
         \"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}}}"
    )
}

/// The counts of OpenAI's APIs, where the input includes cached tokens.
pub(super) struct Counts {
    pub input: u64,
    pub output: u64,
    pub total: u64,
    pub cached: u64,
    pub reasoning: u64,
}

impl Counts {
    /// The counts of an answer.
    pub fn of(answer: &Answer) -> Counts {
        let tokens = Tokens::of(&answer.usage);
        let Tokens { output, cache_read: cached, reasoning, .. } = tokens;
        Counts { input: tokens.all_input(), output, total: tokens.total(), cached, reasoning }
    }
}

/// An error.
pub(super) fn error(trouble: Trouble, message: &str) -> String {
    let (kind, code) = match trouble {
        Trouble::Bad | Trouble::TooSlow => ("invalid_request_error", "null"),
        Trouble::NotFound => ("invalid_request_error", "\"unknown_url\""),
        Trouble::Method => ("invalid_request_error", "\"method_not_supported\""),
        Trouble::Upgrade => ("invalid_request_error", "\"upgrade_not_supported\""),
        Trouble::TooLarge => ("invalid_request_error", "\"request_too_large\""),
        Trouble::Forbidden => ("permission_error", "\"forbidden\""),
        Trouble::Drifted => ("conflict_error", "\"steno_drift\""),
        Trouble::Ended => ("invalid_request_error", "\"steno_end\""),
    };
    spelled(kind, code, message)
}

/// A recorded error, by its status.
pub(super) fn failure(status: u16, message: &str) -> String {
    match status {
        401 => spelled("invalid_request_error", "\"invalid_api_key\"", message),
        429 => spelled("requests", "\"rate_limit_exceeded\"", message),
        500.. => spelled("server_error", "null", message),
        _ => spelled("invalid_request_error", "null", message),
    }
}

fn spelled(kind: &str, code: &str, message: &str) -> String {
    format!("{{\"error\":{{\"message\":{},\"type\":{},\"param\":null,\"code\":{code}}}}}", quote(message), quote(kind))
}

/// The list of models.
pub(super) fn models(tape: &Tape) -> String {
    let models: Vec<String> = tape.models().into_iter().map(model_json).collect();
    format!("{{\"object\":\"list\",\"data\":[{}]}}", models.join(","))
}

/// One model.
pub(super) fn model_json(name: &str) -> String {
    format!("{{\"id\":{},\"object\":\"model\",\"created\":0,\"owned_by\":\"recording\"}}", quote(name))
}
