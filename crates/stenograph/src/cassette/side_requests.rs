//! Recognizes requests that are not part of the recorded conversation, such as a request for a title. They must not use up an answer of
//! the conversation. Such a request has no recorded item and offers no tools; and either the next answer does not fit it, or the agent
//! usually offers tools.

use std::collections::HashSet;

use super::chat_item::ChatItem;
use super::tape::{Answer, Tape};
use super::vendor::{Form, Request};
use crate::json::Object;
use crate::model::Role;

/// Whether earlier requests offered tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OffersTools {
    /// None has offered a tool so far.
    #[default]
    Unknown,
    /// The agent offers tools.
    Tools,
}

/// Whether a request is not part of the conversation whose next answer is this one.
pub(super) fn is_side_request(tape: &Tape, next: &Answer, request: &Request, offers_tools: OffersTools) -> bool {
    if !request.tools.is_empty() || shares(tape.conversation(next), &request.conversation) {
        return false;
    }
    let is_probe = request.tokens_max.is_some_and(|max| max <= 1);
    let is_form = request.form == Form::Json && !is_json(next);
    is_probe || is_form || offers_tools == OffersTools::Tools
}

/// Whether a request has a recorded item. True if nothing is recorded, because then nothing can be decided.
fn shares(recorded: &[ChatItem], asked: &[ChatItem]) -> bool {
    let asked: HashSet<(&str, String)> = asked.iter().map(|item| (item.name(), item.text())).collect();
    recorded.is_empty() || recorded.iter().any(|item| asked.contains(&(item.name(), item.text())))
}

/// Whether an answer is a JSON object.
fn is_json(answer: &Answer) -> bool {
    let texts = answer.blocks.iter().filter_map(|block| match &block.item {
        ChatItem::Message { role: Role::Assistant, text } => Some(text.as_str()),
        ChatItem::Message { .. } | ChatItem::Thinking { .. } | ChatItem::Call { .. } | ChatItem::Result { .. } => None,
    });
    Object::parse(texts.collect::<String>().trim()).is_some()
}
