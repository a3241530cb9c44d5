//! Anthropic's Messages API: reads requests, and writes answers as a whole and as a stream. It does not select answers.

use super::chat_item::ChatItem;
use super::tape::{Answer, Stop, Tape};
use super::vendor::{Delivery, Form, Frames, Request, StreamFrame, Trouble, deltas, id, model, number};
use crate::formats::anthropic::blocks;
use crate::json::{Draft, Object, items};
use crate::model::{Body, Content, Role};
use crate::text::{Text, quote};

/// The event that keeps an idle stream alive.
pub(super) const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// Reads a request.
pub(super) fn request(object: &Object<'_>) -> Result<Request, String> {
    let list = object.peek("messages").and_then(items).ok_or("messages: Field required, and must be a list")?;
    let mut conversation = Vec::with_capacity(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        let bad = || format!("messages.{at}: must be a message with a role and a content");
        let message = Object::parse(raw).ok_or_else(bad)?;
        let role = message.peek_str("role").and_then(|role| Role::named(&role));
        let role = role.filter(|role| *role != Role::Unknown && *role != Role::Tool).ok_or_else(bad)?;
        conversation.extend(content(message.peek("content").ok_or_else(bad)?, role).ok_or_else(bad)?);
    }
    let prompts = object.peek("system").and_then(|raw| content(raw, Role::System)).unwrap_or_default();
    let prompts = prompts.iter().map(ChatItem::text).collect();
    let tools = object.peek("tools").and_then(items).unwrap_or_default();
    let name = |raw: &str| Object::parse(raw)?.peek_str("name").map(String::from);
    let tools = tools.into_iter().filter_map(name).collect();
    let delivery = if object.peek_true("stream") { Delivery::Streamed } else { Delivery::Whole };
    let config = object.peek("output_config").and_then(Object::parse);
    let form = Form::stated(config.as_ref().and_then(|config| config.peek("format")).or(object.peek("output_format")));
    let model = object.peek_str("model").map(String::from);
    let tokens_max = number(object, "max_tokens");
    Ok(Request { model, delivery, conversation, prompts, tools, form, tokens_max, injected: Vec::new() })
}

/// The items of a content, which is a text or a list of blocks.
fn content(raw: &str, role: Role) -> Option<Vec<ChatItem>> {
    if let Some(text) = Text::from_json(raw) {
        return Some(ChatItem::of(&Body::Message { role, content: Content::Text(text) }, ""));
    }
    let events = blocks(items(raw)?, role, &mut Vec::new());
    let items = events.iter().flat_map(|event| match &event.body {
        body @ (Body::ToolCall { call, .. } | Body::ToolResult { call, .. }) => {
            ChatItem::of(body, call.as_deref().unwrap_or_default())
        }
        body => ChatItem::of(body, ""),
    });
    Some(items.collect())
}

/// An answer as one object.
pub(super) fn whole(answer: &Answer, request: &Request) -> String {
    let blocks: Vec<String> = answer.blocks.iter().filter_map(|block| whole_block(&block.item)).collect();
    let mut draft = head(answer, request);
    draft.set("content", format!("[{}]", blocks.join(",")));
    draft.set_str("stop_reason", reason(answer.stop));
    draft.set("stop_sequence", "null");
    draft.set("usage", usage(answer, answer.usage.output.unwrap_or_default()));
    draft.render(None)
}

fn whole_block(item: &ChatItem) -> Option<String> {
    let mut draft = Draft::new();
    match item {
        ChatItem::Message { text, .. } => {
            draft.set_str("type", "text");
            draft.set_str("text", text);
            draft.set("citations", "null");
        }
        ChatItem::Thinking { redacted: Some(data), .. } => {
            draft.set_str("type", "redacted_thinking");
            draft.set_str("data", data);
        }
        ChatItem::Thinking { text, signature, .. } => {
            // This API has no place for encrypted thoughts of another vendor.
            if text.is_empty() && signature.is_none() {
                return None;
            }
            draft.set_str("type", "thinking");
            draft.set_str("thinking", text);
            draft.set_str("signature", signature.as_deref().unwrap_or_default());
        }
        ChatItem::Call { id, name, input } => {
            draft.set_str("type", "tool_use");
            draft.set_str("id", id);
            draft.set_str("name", name);
            draft.set("input", input.to_object().into_owned());
        }
        ChatItem::Result { .. } => return None,
    }
    Some(draft.render(None))
}

/// An answer as the events of a stream.
pub(super) fn frames(answer: &Answer, request: &Request) -> Vec<StreamFrame> {
    let mut message = head(answer, request);
    message.set("content", "[]");
    message.set("stop_reason", "null");
    message.set("stop_sequence", "null");
    // The service states a small output count before it has written the answer.
    message.set("usage", usage(answer, answer.usage.output.unwrap_or_default().min(1)));
    let mut frames = Frames::default();
    frames.push(frame("message_start", &format!("\"message\":{}", message.render(None))));
    frames.push(PING.to_owned());
    let mut index = 0;
    for block in &answer.blocks {
        if let Some((start, deltas)) = pieces(&block.item) {
            let mut texts = vec![frame("content_block_start", &format!("\"index\":{index},\"content_block\":{start}"))];
            let delta = |delta: &String| frame("content_block_delta", &format!("\"index\":{index},\"delta\":{delta}"));
            texts.extend(deltas.iter().map(delta));
            texts.push(frame("content_block_stop", &format!("\"index\":{index}")));
            frames.block(texts, block.after_ms);
            index += 1;
        }
    }
    let stop = format!("{{\"stop_reason\":{},\"stop_sequence\":null}}", quote(reason(answer.stop)));
    let usage = usage(answer, answer.usage.output.unwrap_or_default());
    frames.push(frame("message_delta", &format!("\"delta\":{stop},\"usage\":{usage}")));
    frames.push("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned());
    frames.finish()
}

/// The first event of a block, and its deltas.
fn pieces(item: &ChatItem) -> Option<(String, Vec<String>)> {
    let typed = |kind: &str, key: &str, texts: Vec<&str>| -> Vec<String> {
        texts.into_iter().map(|text| format!("{{\"type\":\"{kind}\",\"{key}\":{}}}", quote(text))).collect()
    };
    Some(match item {
        ChatItem::Message { text, .. } => {
            let start = "{\"type\":\"text\",\"text\":\"\"}".to_owned();
            (start, typed("text_delta", "text", deltas(text)))
        }
        ChatItem::Thinking { redacted: Some(_), .. } => (whole_block(item)?, Vec::new()),
        ChatItem::Thinking { text, signature, .. } => {
            // A block without a whole form has no stream either.
            whole_block(item)?;
            let start = "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}".to_owned();
            let mut pieces = typed("thinking_delta", "thinking", deltas(text));
            pieces.extend(typed("signature_delta", "signature", signature.as_deref().into_iter().collect()));
            (start, pieces)
        }
        ChatItem::Call { id, name, input } => {
            let (id, name) = (quote(id), quote(name));
            let start = format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{{}}}}");
            let input = input.to_object();
            // The service begins with an empty delta.
            let texts = std::iter::once("").chain(deltas(&input)).collect();
            (start, typed("input_json_delta", "partial_json", texts))
        }
        ChatItem::Result { .. } => return None,
    })
}

fn frame(kind: &str, rest: &str) -> String {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n")
}

fn head(answer: &Answer, request: &Request) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_str("id", &id(answer, "msg_"));
    draft.set_str("type", "message");
    draft.set_str("role", "assistant");
    draft.set_str("model", model(answer, request));
    draft
}

fn reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Tools => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

/// The usage. A missing count is 0, because the API requires a number.
fn usage(answer: &Answer, output: u64) -> String {
    let usage = &answer.usage;
    let stated = |number: Option<u64>| number.unwrap_or_default();
    format!(
        "{{\"input_tokens\":{},\"cache_creation_input_tokens\":{},\"cache_read_input_tokens\":{},\"output_tokens\":{output}}}",
        stated(usage.input),
        stated(usage.cache_write),
        stated(usage.cache_read),
    )
}

/// An error.
pub(super) fn error(trouble: Trouble, message: &str) -> String {
    let kind = match trouble {
        Trouble::Bad | Trouble::Method | Trouble::Upgrade | Trouble::TooSlow | Trouble::Drifted | Trouble::Ended => {
            "invalid_request_error"
        }
        Trouble::NotFound => "not_found_error",
        Trouble::TooLarge => "request_too_large",
        Trouble::Forbidden => "permission_error",
    };
    spelled(kind, message)
}

/// A recorded error, by its status.
pub(super) fn failure(status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    spelled(kind, message)
}

fn spelled(kind: &str, message: &str) -> String {
    format!("{{\"type\":\"error\",\"error\":{{\"type\":{},\"message\":{}}}}}", quote(kind), quote(message))
}

/// The list of models.
pub(super) fn models(tape: &Tape) -> String {
    let names = tape.models();
    let models: Vec<String> = names.iter().map(|name| model_json(name)).collect();
    let end = |name: Option<&&str>| name.map_or_else(|| "null".to_owned(), |name| quote(name));
    format!(
        "{{\"data\":[{}],\"has_more\":false,\"first_id\":{},\"last_id\":{}}}",
        models.join(","),
        end(names.first()),
        end(names.last())
    )
}

/// One model.
pub(super) fn model_json(name: &str) -> String {
    let name = quote(name);
    format!("{{\"type\":\"model\",\"id\":{name},\"display_name\":{name},\"created_at\":\"1970-01-01T00:00:00Z\"}}")
}
