//! Whether a request belongs to the recorded conversation at all. Agents ask models for titles and the like beside it; such a request must
//! not take an answer that was meant for the conversation. It is only set aside when two things speak for it: nothing that was recorded
//! stands in it and it offers no tools, and it cannot be answered by what comes next, or the agent is known to offer tools.

use std::collections::HashSet;

use super::chat_item::ChatItem;
use super::tape::{Answer, Tape};
use super::vendor::{Form, Request};
use crate::json::Object;
use crate::model::Role;

/// Whether the requests before it offered tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OffersTools {
    /// None has offered a tool so far.
    #[default]
    Unknown,
    /// Who asks offers tools.
    Tools,
}

/// Whether a request is asked beside the conversation of which this answer comes next.
pub(super) fn is_beside(tape: &Tape, next: &Answer, request: &Request, habit: OffersTools) -> bool {
    if !request.tools.is_empty() || shares(tape.told(next), &request.told) {
        return false;
    }
    let is_probe = request.tokens_max.is_some_and(|max| max <= 1);
    let is_form = request.form == Form::Json && !is_json(next);
    is_probe || is_form || habit == OffersTools::Tools
}

/// Whether anything that was recorded is told, or nothing can be said about it.
fn shares(recorded: &[ChatItem], asked: &[ChatItem]) -> bool {
    let asked: HashSet<(&str, String)> = asked.iter().map(|said| (said.name(), said.text())).collect();
    recorded.is_empty() || recorded.iter().any(|said| asked.contains(&(said.name(), said.text())))
}

/// Whether an answer is a JSON object.
fn is_json(answer: &Answer) -> bool {
    let texts = answer.blocks.iter().filter_map(|block| match &block.item {
        ChatItem::Message { role: Role::Assistant, text } => Some(text.as_str()),
        ChatItem::Message { .. } | ChatItem::Thinking { .. } | ChatItem::Call { .. } | ChatItem::Result { .. } => None,
    });
    Object::parse(texts.collect::<String>().trim()).is_some()
}
