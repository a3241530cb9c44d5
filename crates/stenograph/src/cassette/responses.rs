//! OpenAI's Responses API: reads requests, and writes answers as a whole and as a stream. It is stateless: a client must send the whole
//! conversation, as agents do. It does not select answers.

use super::chat_item::ChatItem;
use super::openai::Counts;
use super::tape::{Answer, Stop};
use super::vendor::{Delivery, Form, Frames, Request, StreamFrame, deltas, id, model, number};
use crate::formats::chat::address;
use crate::json::{Draft, Object, items};
use crate::model::{Body, Content, ExtraFields, Input, Piece, PieceKind, Role};
use crate::text::{Text, quote};

/// Reads a request.
pub(super) fn request(object: &Object<'_>) -> Result<Request, String> {
    let input = object.peek("input").ok_or("input: must be a text or a list")?;
    let mut conversation = Vec::new();
    if let Some(text) = Text::from_json(input) {
        conversation.extend(ChatItem::of(&Body::Message { role: Role::User, content: Content::Text(text) }, ""));
    } else {
        for (at, raw) in items(input).ok_or("input: must be a text or a list")?.into_iter().enumerate() {
            conversation
                .extend(item(raw).ok_or_else(|| format!("input[{at}]: must be an item with a type or a role"))?);
        }
    }
    let tools = object.peek("tools").and_then(items).unwrap_or_default();
    let tool = |raw: &str| {
        let tool = Object::parse(raw)?;
        // The type of a hosted tool is its name.
        tool.peek_str("name").or_else(|| tool.peek_str("type")).map(String::from)
    };
    let tools = tools.into_iter().filter_map(tool).collect();
    let delivery = if object.peek_true("stream") { Delivery::Streamed } else { Delivery::Whole };
    let prompts = object.peek_str("instructions").map(String::from).into_iter().collect();
    let text = object.peek("text").and_then(Object::parse);
    let form = Form::stated(text.as_ref().and_then(|text| text.peek("format")));
    let model = object.peek_str("model").map(String::from);
    let tokens_max = number(object, "max_output_tokens");
    Ok(Request { model, delivery, conversation, prompts, tools, form, tokens_max, injected: Vec::new() })
}

/// The chat items of an item; none for an item without text, such as an encrypted thought.
fn item(raw: &str) -> Option<Vec<ChatItem>> {
    let object = Object::parse(raw)?;
    let kind = object.peek_str("type");
    let kind = kind.as_deref().or_else(|| object.has("role").then_some("message"))?;
    let call = object.peek_str("call_id").or_else(|| object.peek_str("id")).unwrap_or_default();
    let name = || object.peek_str("name").unwrap_or_default();
    let body = match kind {
        "message" => {
            let role = object.peek_str("role").and_then(|role| Role::named(&role))?;
            Body::Message { role, content: content(object.peek("content")?)? }
        }
        "function_call" => {
            let input = Input::from_text(Text::from_json(object.peek("arguments")?)?);
            Body::ToolCall { call: None, name: name(), input }
        }
        "custom_tool_call" => {
            Body::ToolCall { call: None, name: name(), input: Input::Text(Text::from_json(object.peek("input")?)?) }
        }
        "local_shell_call" => {
            let input = Input::Json(object.peek("action")?.into());
            Body::ToolCall { call: None, name: "local_shell".into(), input }
        }
        _ if kind.ends_with("_call_output") => {
            Body::ToolResult { call: None, name: None, content: content(object.peek("output")?)?, error: None }
        }
        _ => return Some(Vec::new()),
    };
    Some(ChatItem::of(&body, &call))
}

/// A content: a text, or a list of texts and pictures.
fn content(raw: &str) -> Option<Content<'_>> {
    if let Some(text) = Text::from_json(raw) {
        return Some(Content::Text(text));
    }
    let piece = |raw: &'_ str| -> Piece<'_> {
        let kind = Object::parse(raw).and_then(|object| {
            if let Some(text) = object.peek("text").and_then(Text::from_json) {
                return Some(PieceKind::Text(text.into_owned()));
            }
            let url = object.peek("image_url").and_then(Text::from_json)?;
            let (media, data) = address(url.into_owned());
            Some(PieceKind::Blob { media, data })
        });
        Piece { kind: kind.unwrap_or_else(|| PieceKind::Other(raw.to_owned().into())), extra: ExtraFields::default() }
    };
    Some(Content::Pieces(items(raw)?.into_iter().map(piece).collect()))
}

/// An answer as one object.
pub(super) fn whole(answer: &Answer, request: &Request) -> String {
    let items: Vec<String> = output(answer).iter().map(Item::whole).collect();
    let status = if answer.stop == Stop::Length { "incomplete" } else { "completed" };
    object(answer, request, status, &items)
}

/// An answer as the events of a stream.
pub(super) fn frames(answer: &Answer, request: &Request) -> Vec<StreamFrame> {
    let mut sending = Sending::default();
    let begun = format!("\"response\":{}", object(answer, request, "in_progress", &[]));
    for kind in ["response.created", "response.in_progress"] {
        sending.put(kind, &begun);
        sending.end(0);
    }
    let items = output(answer);
    for (index, item) in items.iter().enumerate() {
        item.send(index, &mut sending);
        sending.end(item.after_ms);
    }
    let kind = match answer.stop {
        Stop::Length => "response.incomplete",
        Stop::End | Stop::Tools | Stop::Refusal => "response.completed",
    };
    sending.put(kind, &format!("\"response\":{}", whole(answer, request)));
    sending.end(0);
    sending.frames.finish()
}

/// Numbered events, collected until their item is complete.
#[derive(Default)]
struct Sending {
    frames: Frames,
    held: Vec<String>,
    sent: u64,
}

impl Sending {
    fn put(&mut self, kind: &str, rest: &str) {
        let number = self.sent;
        self.sent += 1;
        self.held.push(format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},{rest}}}\n\n"));
    }

    /// Adds a text as deltas, and then as a whole under this key.
    fn put_text(&mut self, kind: &str, place: &str, key: &str, text: &str) {
        // Clients require one more field for this event.
        let more = if kind == "response.output_text" { ",\"logprobs\":[]" } else { "" };
        for piece in deltas(text) {
            self.put(&format!("{kind}.delta"), &format!("{place},\"delta\":{}{more}", quote(piece)));
        }
        self.put(&format!("{kind}.done"), &format!("{place},\"{key}\":{}{more}", quote(text)));
    }

    /// Ends the collected events at this time after the request.
    fn end(&mut self, after_ms: u64) {
        self.frames.block(std::mem::take(&mut self.held), after_ms);
    }
}

fn object(answer: &Answer, request: &Request, status: &str, items: &[String]) -> String {
    let mut draft = Draft::new();
    draft.set_str("id", &id(answer, "resp_"));
    draft.set_str("object", "response");
    draft.set("created_at", answer.time_seconds.unwrap_or_default().to_string());
    draft.set_str("status", status);
    draft.set("error", "null");
    let incomplete = if status == "incomplete" { "{\"reason\":\"max_output_tokens\"}" } else { "null" };
    draft.set("incomplete_details", incomplete);
    draft.set("instructions", "null");
    draft.set("max_output_tokens", "null");
    draft.set_str("model", model(answer, request));
    draft.set("output", format!("[{}]", items.join(",")));
    draft.set("parallel_tool_calls", "true");
    draft.set("previous_response_id", "null");
    draft.set("reasoning", "{\"effort\":null,\"summary\":null}");
    draft.set("store", "false");
    draft.set("temperature", "1.0");
    draft.set("text", "{\"format\":{\"type\":\"text\"}}");
    draft.set_str("tool_choice", "auto");
    draft.set("tools", "[]");
    draft.set("top_p", "1.0");
    draft.set_str("truncation", "disabled");
    draft.set("usage", if status == "in_progress" { "null".to_owned() } else { usage(answer) });
    draft.set("user", "null");
    draft.set("metadata", "{}");
    draft.render(None)
}

fn usage(answer: &Answer) -> String {
    let Counts { input, output, total, cached, reasoning } = Counts::of(answer);
    format!(
        "{{\"input_tokens\":{input},\"input_tokens_details\":{{\"cached_tokens\":{cached}}},\"output_tokens\":{output},\
         \"output_tokens_details\":{{\"reasoning_tokens\":{reasoning}}},\"total_tokens\":{total}}}"
    )
}

/// One item of an answer.
struct Item<'a> {
    id: String,
    item: &'a ChatItem,
    after_ms: u64,
}

/// The items of an answer.
fn output(answer: &Answer) -> Vec<Item<'_>> {
    let mut items = Vec::with_capacity(answer.blocks.len());
    for (place, block) in answer.blocks.iter().enumerate() {
        let prefix = match &block.item {
            ChatItem::Message { .. } => "msg",
            // This API has no place for encrypted thoughts of another vendor.
            ChatItem::Thinking { text, encrypted, .. } if text.is_empty() && encrypted.is_none() => continue,
            ChatItem::Thinking { .. } => "rs",
            ChatItem::Call { input: Input::Json(_), .. } => "fc",
            ChatItem::Call { input: Input::Text(_), .. } => "ctc",
            ChatItem::Result { .. } => continue,
        };
        let id = format!("{prefix}_steno{:06}_{place}", answer.number);
        items.push(Item { id, item: &block.item, after_ms: block.after_ms });
    }
    items
}

fn text_part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"text\":{},\"annotations\":[],\"logprobs\":[]}}", quote(text))
}

fn summary_part(text: &str) -> String {
    format!("{{\"type\":\"summary_text\",\"text\":{}}}", quote(text))
}

impl Item<'_> {
    /// The completed item.
    fn whole(&self) -> String {
        match self.item {
            ChatItem::Message { text, .. } => self.spelled("completed", &format!("[{}]", text_part(text))),
            ChatItem::Thinking { text, .. } => {
                let summary = if text.is_empty() { "[]".to_owned() } else { format!("[{}]", summary_part(text)) };
                self.spelled("completed", &summary)
            }
            ChatItem::Call { input: input @ Input::Json(_), .. } => {
                self.spelled("completed", &quote(&input.to_object()))
            }
            ChatItem::Call { input, .. } => self.spelled("completed", &input.to_text().to_json()),
            ChatItem::Result { .. } => String::new(),
        }
    }

    /// The item with this status and content.
    fn spelled(&self, status: &str, filling: &str) -> String {
        let mut draft = Draft::new();
        let kind = match self.item {
            ChatItem::Message { .. } => "message",
            ChatItem::Thinking { .. } => "reasoning",
            ChatItem::Call { input: Input::Json(_), .. } => "function_call",
            ChatItem::Call { .. } => "custom_tool_call",
            ChatItem::Result { .. } => "",
        };
        draft.set_str("id", &self.id);
        draft.set_str("type", kind);
        match self.item {
            ChatItem::Message { .. } => {
                draft.set_str("status", status);
                draft.set_str("role", "assistant");
                draft.set("content", filling.to_owned());
            }
            ChatItem::Thinking { encrypted, .. } => {
                draft.set("summary", filling.to_owned());
                draft.set("encrypted_content", encrypted.as_deref().map_or_else(|| "null".to_owned(), quote));
            }
            ChatItem::Call { id, name, input } => {
                draft.set_str("status", status);
                draft.set_str("call_id", id);
                draft.set_str("name", name);
                let key = if matches!(input, Input::Json(_)) { "arguments" } else { "input" };
                draft.set(key, filling.to_owned());
            }
            ChatItem::Result { .. } => {}
        }
        draft.render(None)
    }

    /// Adds the events of the item.
    fn send(&self, index: usize, sending: &mut Sending) {
        let empty = match self.item {
            ChatItem::Message { .. } | ChatItem::Thinking { .. } => "[]",
            ChatItem::Call { .. } | ChatItem::Result { .. } => "\"\"",
        };
        let item = |item: &str| format!("\"output_index\":{index},\"item\":{item}");
        sending.put("response.output_item.added", &item(&self.spelled("in_progress", empty)));
        let place = format!("\"item_id\":{},\"output_index\":{index}", quote(&self.id));
        let part = |place: &str, part: &str| format!("{place},\"part\":{part}");
        match self.item {
            ChatItem::Message { text, .. } => {
                let place = format!("{place},\"content_index\":0");
                sending.put("response.content_part.added", &part(&place, &text_part("")));
                sending.put_text("response.output_text", &place, "text", text);
                sending.put("response.content_part.done", &part(&place, &text_part(text)));
            }
            ChatItem::Thinking { text, .. } if !text.is_empty() => {
                let place = format!("{place},\"summary_index\":0");
                sending.put("response.reasoning_summary_part.added", &part(&place, &summary_part("")));
                sending.put_text("response.reasoning_summary_text", &place, "text", text);
                sending.put("response.reasoning_summary_part.done", &part(&place, &summary_part(text)));
            }
            ChatItem::Call { input: input @ Input::Json(_), .. } => {
                sending.put_text("response.function_call_arguments", &place, "arguments", &input.to_object());
            }
            ChatItem::Call { input, .. } => {
                sending.put_text("response.custom_tool_call_input", &place, "input", &input.to_text().decode());
            }
            ChatItem::Thinking { .. } | ChatItem::Result { .. } => {}
        }
        sending.put("response.output_item.done", &item(&self.whole()));
    }
}
