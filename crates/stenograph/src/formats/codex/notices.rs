//! Reads `event_msg` payloads: what Codex showed to its user. Many repeat, for people, a response item for the model; such
//! events are marked as restating, and keep their text. This file decides that without looking at other lines.

use super::content;
use crate::json::Object;
use crate::model::{Body, Content, Event, Fact, Role, Usage};
use crate::text::Str;

/// Known events that repeat an item, with more or less detail.
const RESTATING: &[&str] = &[
    "collab_agent_interaction_end",
    "collab_agent_spawn_end",
    "collab_close_end",
    "collab_resume_end",
    "collab_waiting_end",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "exec_command_begin",
    "exec_command_end",
    "image_generation_end",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];

/// Known events that state something of their own.
const STATING: &[&str] = &[
    "agent_reasoning_section_break",
    "entered_review_mode",
    "exited_review_mode",
    "guardian_assessment",
    "session_configured",
    "sub_agent_activity",
    "task_started",
    "thread_goal_updated",
    "thread_settings_applied",
    "turn_diff",
    "turn_started",
];

/// Items of a turn that no response item repeats.
const WITHOUT_RESPONSE_ITEM: &[&str] = &["Plan", "Sleep"];

/// The field with the text of an event, for reader and writer.
pub fn text_key(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "user_message" | "agent_message" | "error" | "stream_error" | "warning" | "undo_completed"
        | "background_event" => "message",
        "agent_reasoning" | "agent_reasoning_raw_content" => "text",
        "task_complete" | "turn_complete" => "last_agent_message",
        "thread_name_updated" => "thread_name",
        _ => return None,
    })
}

/// The event of a payload; nothing is taken from an unknown one.
pub fn read<'a>(kind: &str, payload: &mut Object<'a>) -> Option<Event<'a>> {
    let take_content = |payload: &mut Object<'a>| payload.take_text(text_key(kind)?).map(Content::Text);
    let fact = |content| Body::Fact { fact: kind.to_owned().into(), content };
    let (body, restates) = match kind {
        "token_count" => return Some(token_count(payload)),
        "user_message" => (Body::Message { role: Role::User, content: take_content(payload)? }, true),
        "agent_message" => (Body::Message { role: Role::Assistant, content: take_content(payload)? }, true),
        "agent_reasoning" | "agent_reasoning_raw_content" => (Body::Thinking { content: take_content(payload)? }, true),
        "context_compacted" => (Body::Compaction { summary: None }, true),
        "error" | "stream_error" => {
            let content = take_content(payload);
            (Body::Failure { name: payload.take_name("codex_error_info"), content }, false)
        }
        "task_complete" | "turn_complete" => (turn_end(payload, take_content), false),
        "turn_aborted" => {
            (Body::Stop { reason: payload.take_name("reason"), success: Some(false), content: None }, false)
        }
        "thread_name_updated" => (Body::Fact { fact: Fact::Title, content: Some(take_content(payload)?) }, false),
        // The number of turns that were undone: they are no longer part of the conversation.
        "thread_rolled_back" => {
            let turns = payload.take_number("num_turns").map(|turns| Content::text(turns.to_string()));
            (Body::Fact { fact: Fact::Rewind, content: turns }, false)
        }
        "warning" | "undo_completed" | "background_event" => (fact(take_content(payload)), false),
        "item_completed" | "item_started" => (fact(None), repeats_item(payload)),
        name if RESTATING.contains(&name) => (fact(None), true),
        name if STATING.contains(&name) => (fact(None), false),
        _ => return None,
    };
    Some(Event { restates, ..Event::new(body) })
}

fn repeats_item(payload: &Object<'_>) -> bool {
    let kind = payload.peek("item").and_then(Object::parse).and_then(|item| item.peek_str("type"));
    !kind.is_some_and(|kind| WITHOUT_RESPONSE_ITEM.contains(&kind.as_ref()))
}

/// The end of a turn, or its failure.
fn turn_end<'a>(payload: &mut Object<'a>, take_content: impl Fn(&mut Object<'a>) -> Option<Content<'a>>) -> Body<'a> {
    let has_error =
        payload.peek("error").and_then(Object::parse).is_some_and(|error| error.peek_str("message").is_some());
    if has_error && let Some(mut error) = payload.open("error") {
        let (content, name) = (content::take(&mut error, "message"), error.take_name("codex_error_info"));
        payload.close("error", error);
        return Body::Failure { name, content };
    }
    Body::Stop { reason: None, success: None, content: take_content(payload) }
}

/// The usage of the last response. Codex repeats a count if only the rate limits have changed; the running total identifies the
/// response.
fn token_count<'a>(payload: &mut Object<'a>) -> Event<'a> {
    let mut event = Event::new(Body::Fact { fact: Fact::Usage, content: None });
    let Some(mut info) = payload.open("info") else { return event };
    if let Some(mut last) = info.open("last_token_usage") {
        event.usage = usage(&mut last);
        info.close("last_token_usage", last);
    }
    if event.usage.is_some()
        && let Some(mut total) = info.open("total_token_usage")
    {
        event.group = total.take_number("total_tokens").map(|number| Str::Owned(number.to_string()));
        info.close("total_token_usage", total);
    }
    payload.close("info", info);
    event
}

/// The counter of input tokens.
pub const INPUT: &str = "input_tokens";
/// The counter of input tokens from a cache.
pub const CACHED: &str = "cached_input_tokens";
/// The counter of input tokens written to a cache.
pub const CACHE_WRITE: &str = "cache_write_input_tokens";
/// The counter of output tokens.
pub const OUTPUT: &str = "output_tokens";
/// The counter of output tokens that are thoughts.
pub const REASONING: &str = "reasoning_output_tokens";

/// The usage of one response. Codex includes cached tokens in the input; the model separates them. Numbers that do not add up
/// stay in the object.
fn usage(numbers: &mut Object<'_>) -> Option<Usage> {
    let number = |key: &str| numbers.peek(key).and_then(crate::json::number);
    let (read, write) = (number(CACHED), number(CACHE_WRITE));
    let cached = read.unwrap_or(0).checked_add(write.unwrap_or(0))?;
    let input = number(INPUT)?.checked_sub(cached)?;
    let mut usage = numbers.take_usage([INPUT, OUTPUT, CACHED, CACHE_WRITE, REASONING]);
    usage.input = Some(input);
    usage.stated()
}
