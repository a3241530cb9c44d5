//! Checks the token limits of `steno config` while a loaded conversation continues, at the three moments of CycoD: when it is
//! loaded, when the user adds a message, and before a request to the model. A recording keeps every word, so nothing is
//! trimmed: each exceeded limit is reported once, with the command that prints the trimmed conversation.

use std::path::Path;

use stenograph::edit::trim::Limits;
use stenograph::model::{Body, Event, Role};
use stenograph::read::Sink;

use crate::config::{Config, MAX_CHAT_TOKENS, MAX_PROMPT_TOKENS, MAX_TOOL_TOKENS, Setting};
use crate::error::CommandError;
use crate::output::{Output, grouped};

/// Counts the tokens of a conversation as it continues.
#[derive(Debug)]
pub struct LimitWatch {
    limits: Limits,
    bytes: u64,
    /// The exceeded limits to report, with the number of tokens.
    unreported: Vec<(&'static str, u64, u64)>,
    /// The limits that were exceeded before.
    exceeded: Vec<&'static str>,
}

/// As CycoD counts.
const BYTES_PER_TOKEN: u64 = 4;

impl LimitWatch {
    /// The configured limits; `None` if there are none.
    pub fn configured() -> Result<Option<LimitWatch>, CommandError> {
        let limits = Config::load()?.limits()?;
        let watch = LimitWatch { limits, bytes: 0, unreported: Vec::new(), exceeded: Vec::new() };
        Ok((limits != Limits::NONE).then_some(watch))
    }

    /// Checks the loaded conversation.
    pub fn loaded(&mut self) {
        self.compare(&MAX_CHAT_TOKENS, self.limits.chat, self.bytes);
    }

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
            // The next request to the model contains it.
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
            self.unreported.push((setting.key, tokens, limit));
        }
    }

    /// Reports the limits exceeded since the last call.
    pub fn report(&mut self, load: Option<&Path>, output: &mut Output<'_>) {
        for (key, tokens, limit) in self.unreported.drain(..) {
            let file = load.map_or_else(|| "FILE".to_owned(), |load| load.display().to_string());
            let (tokens, limit) = (grouped(tokens), grouped(limit));
            output.say(&format!(
                "note: {tokens} tokens exceed {key} ({limit}); everything is recorded, and steno cycod continue {file} prints it trimmed"
            ));
        }
    }
}

impl Sink for LimitWatch {
    fn event(&mut self, event: &Event<'_>) {
        let (unreported, exceeded) = (self.unreported.len(), self.exceeded.len());
        self.add(event);
        // The loaded conversation is checked as a whole, once.
        self.unreported.truncate(unreported);
        self.exceeded.truncate(exceeded);
    }
}

/// The size of an event's texts and input.
fn size(event: &Event<'_>) -> u64 {
    let input = match &event.body {
        Body::ToolCall { input, .. } => input.to_json().len(),
        _ => 0,
    };
    let texts = event.content().map_or(0, |content| content.texts().map(|text| text.wtf8().len()).sum::<usize>());
    (input + texts) as u64
}
