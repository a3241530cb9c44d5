//! The token limits of `steno config` while a loaded conversation goes on, at the three moments of CycoD: when it is loaded, when the
//! user says something, and before the model is asked. A recording keeps every word, so nothing is trimmed here: each limit that is
//! exceeded is said once, with the command that prints the conversation trimmed.

use std::path::Path;

use stenograph::edit::trim::Limits;
use stenograph::model::{Body, Event, Note, Role};
use stenograph::read::Sink;

use crate::config::{Config, MAX_CHAT_TOKENS, MAX_PROMPT_TOKENS, MAX_TOOL_TOKENS, Setting};
use crate::error::CommandError;
use crate::output::{Output, grouped};

/// Counts a conversation as it goes on.
#[derive(Debug)]
pub struct LimitWatch {
    limits: Limits,
    bytes: u64,
    /// The limits that were exceeded and not said yet, with the number of tokens.
    news: Vec<(&'static str, u64, u64)>,
    /// The limits that were exceeded before.
    exceeded: Vec<&'static str>,
}

/// As CycoD counts.
const BYTES_PER_TOKEN: u64 = 4;

impl LimitWatch {
    /// The limits that are set; `None` when there are none.
    pub fn configured() -> Result<Option<LimitWatch>, CommandError> {
        let limits = Config::load()?.limits()?;
        let watch = LimitWatch { limits, bytes: 0, news: Vec::new(), exceeded: Vec::new() };
        Ok((limits != Limits::NONE).then_some(watch))
    }

    /// Compares what was loaded with the limit of a conversation.
    pub fn loaded(&mut self) {
        self.compare(&MAX_CHAT_TOKENS, self.limits.chat, self.bytes);
    }

    /// Takes notice of an event.
    pub fn add(&mut self, event: &Event<'_>) {
        if event.restates {
            return;
        }
        let size = size(event);
        self.bytes = self.bytes.saturating_add(size);
        match &event.body {
            Body::Message { role: Role::User, .. } => {
                self.compare(&MAX_PROMPT_TOKENS, self.limits.prompt, size);
                self.compare(&MAX_CHAT_TOKENS, self.limits.chat, self.bytes);
            }
            // The model is asked with it next.
            Body::ToolResult { .. } => {
                self.compare(&MAX_TOOL_TOKENS, self.limits.tool, size);
                self.compare(&MAX_CHAT_TOKENS, self.limits.chat, self.bytes);
            }
            _ => {}
        }
    }

    fn compare(&mut self, setting: &Setting, limit: u64, bytes: u64) {
        let tokens = bytes / BYTES_PER_TOKEN;
        if limit > 0 && tokens > limit && !self.exceeded.contains(&setting.key) {
            self.exceeded.push(setting.key);
            self.news.push((setting.key, tokens, limit));
        }
    }

    /// Says which limits are exceeded now.
    pub fn say(&mut self, load: Option<&Path>, output: &mut Output<'_>) {
        for (key, tokens, limit) in self.news.drain(..) {
            let file = load.map_or_else(|| "FILE".to_owned(), |load| load.display().to_string());
            let (tokens, limit) = (grouped(tokens), grouped(limit));
            output.say(&format!(
                "note: {tokens} tokens exceed {key} ({limit}); all of it is recorded, and steno continue {file} prints it trimmed"
            ));
        }
    }
}

impl Sink for LimitWatch {
    fn event(&mut self, event: &Event<'_>) {
        let (news, exceeded) = (self.news.len(), self.exceeded.len());
        self.add(event);
        // One moment for all that is loaded.
        self.news.truncate(news);
        self.exceeded.truncate(exceeded);
    }

    fn note(&mut self, _note: Note) {}
}

/// How many bytes an event says.
fn size(event: &Event<'_>) -> u64 {
    let input = match &event.body {
        Body::ToolCall { input, .. } => input.to_json().len(),
        _ => 0,
    };
    let said = event.content().map_or(0, |content| content.texts().map(|text| text.wtf8().len()).sum::<usize>());
    (input + said) as u64
}
