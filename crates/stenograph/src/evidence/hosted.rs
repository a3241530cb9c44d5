//! Hosted tools, which run at the model's vendor: no record has their results; only the call states its outcome.

use super::words;
use crate::model::{Body, Event};
use crate::text::Str;

/// The status that the call of a hosted tool states; `None` for every other event.
pub(crate) fn hosted_status<'e>(event: &'e Event<'_>) -> Option<Option<Str<'e>>> {
    let Body::ToolCall { name: tool, .. } = &event.body else { return None };
    words(event).find_map(|(words, extra)| {
        let mut mine = words.hosted_tools.iter().filter(|(hosted, _)| hosted == tool).peekable();
        mine.peek()?;
        Some(mine.find_map(|(_, path)| extra.word_at(path)))
    })
}
