//! Details of a compaction: the size of the context before and after it, and what stays in the context.

use super::nested::events_of;
use crate::json::{items, word};
use crate::model::{Event, Wanted};

/// The effect of a compaction on the context.
#[derive(Debug, Default)]
pub(crate) struct CompactionDetails {
    /// Tokens before it.
    pub tokens_before: Option<u64>,
    /// Tokens after it.
    pub tokens_after: Option<u64>,
    /// The ids of records that stay in the context.
    pub preserved_ids: Vec<String>,
    /// The events that make up the context afterwards.
    pub preserved_events: Vec<Event<'static>>,
}

impl CompactionDetails {
    /// The details that this event states.
    pub fn of(event: &Event<'_>) -> CompactionDetails {
        let mut details = CompactionDetails::default();
        let mut has_tokens = false;
        for (info, extra) in event.extra.known() {
            let words = &info.calls;
            if let Some((before, after)) = words.compaction_tokens.filter(|_| !has_tokens) {
                has_tokens = true;
                let number = |path: &str| extra.word_at(path)?.parse::<u64>().ok();
                (details.tokens_before, details.tokens_after) = (number(before), number(after));
            }
            let lists = |paths: &[&str]| -> Vec<&str> {
                paths.iter().filter_map(|path| extra.at(path).and_then(items)).flatten().collect()
            };
            let ids = lists(words.preserved_ids).into_iter().filter_map(word);
            details.preserved_ids.extend(ids.map(std::borrow::Cow::into_owned));
            details.preserved_events.extend(events_of(info, &lists(words.preserved_records), Wanted::All));
        }
        details
    }
}
