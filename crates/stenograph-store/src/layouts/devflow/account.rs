//! What the events of a run add up to: tokens by role, cost, how it ended, and which calls stand in a turn that is not the last.
//! Nothing here writes.

use std::collections::HashMap;
use std::path::Path;

use stenograph::model::{Body, Event, Outline, Role, Usage};
use stenograph::time::Time;

use super::Status;
use crate::error::Error;
use crate::journal::{Author, End, Recorded, author};
use crate::tail::Warning;

/// The sum of a run.
#[derive(Debug, Default)]
pub struct Account {
    outline: Outline,
    /// When it ended.
    pub ended: Option<Time<'static>>,
    place: Place,
    open: HashMap<Option<String>, u64>,
    /// Calls that stand in the turn of an assistant after which others follow.
    moved: u64,
    /// Calls after somebody else's turn, which stand in a turn of their own.
    alone: u64,
    /// Whether an assistant has spoken.
    answered: bool,
    /// What users and system prompts state themselves.
    asked: Option<u64>,
}

/// What the last turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Elsewhere,
    Assistant,
    /// Results of tools that no call asked for, after an assistant's turn.
    ResultsAfterAssistant,
}

impl Account {
    /// Adds up a recording.
    pub fn of(recorded: &Recorded) -> Result<Account, Error> {
        let mut account = Account::default();
        let interrupted = recorded.ended == Some(End::Interrupted);
        recorded.read(&mut |event| {
            let own = author(event) == Author::Stop;
            // When a recording that was cut off is completed says nothing about when it ended.
            if !(own && interrupted) && event.time.is_some() {
                account.ended = event.time.clone().map(Time::into_owned);
            }
            if !own {
                account.add(event);
            }
        })?;
        Ok(account)
    }

    fn add(&mut self, event: &Event<'_>) {
        match &event.body {
            // A tool has no tokens of its own.
            Body::ToolResult { .. } => self.outline.add(&Event { usage: None, ..event.clone() }),
            _ => self.outline.add(event),
        }
        if let (Body::Message { role: Role::User | Role::System | Role::Developer, .. }, Some(usage)) =
            (&event.body, event.usage)
        {
            self.asked = Some(self.asked.unwrap_or(0).saturating_add(sent(usage)));
        }
        match &event.body {
            Body::Message { role: Role::Assistant, .. } => (self.place, self.answered) = (Place::Assistant, true),
            Body::Message { role: Role::Tool, .. } => self.result(),
            Body::Message { .. } | Body::Compaction { summary: Some(_) } => self.place = Place::Elsewhere,
            Body::ToolCall { call, .. } => {
                match self.place {
                    Place::ResultsAfterAssistant => self.moved += 1,
                    Place::Assistant => {}
                    Place::Elsewhere => {
                        self.alone += u64::from(self.answered);
                        (self.place, self.answered) = (Place::Assistant, true);
                    }
                }
                *self.open.entry(call.as_deref().map(str::to_owned)).or_default() += 1;
            }
            Body::ToolResult { call, .. } => {
                if !self.answer(call.as_deref()) {
                    self.result();
                }
            }
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Compaction { summary: None }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }

    /// Whether a call waits for this answer; it waits no longer.
    fn answer(&mut self, call: Option<&str>) -> bool {
        let named = call.map(str::to_owned);
        let key = match self.open.contains_key(&named) {
            true => Some(named),
            // A result without an id answers whatever is open.
            false if call.is_none() => self.open.keys().next().cloned(),
            false => None,
        };
        let Some(key) = key else { return false };
        if let Some(count) = self.open.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&key);
            }
        }
        true
    }

    fn result(&mut self) {
        self.place = match self.place {
            Place::Elsewhere => Place::Elsewhere,
            Place::Assistant | Place::ResultsAfterAssistant => Place::ResultsAfterAssistant,
        };
    }

    /// What was sent to the model: what users and system prompts state, as devflow adds it up. Most agents state it with the answers
    /// instead, and then that counts.
    pub fn tokens_in(&self) -> u64 {
        self.asked.unwrap_or_else(|| sent(self.outline.total))
    }

    /// What the assistant wrote.
    pub fn tokens_out(&self) -> u64 {
        self.outline.total.output.unwrap_or(0)
    }

    /// What its events say that it cost.
    pub fn cost(&self) -> Option<f64> {
        self.outline.total.cost.map(|cost| cost.value())
    }

    /// How it ended, in devflow's words, and what went wrong. What the agent said of its own end counts where nobody else ended it.
    pub fn status(&self, end: Option<&End>) -> (Status, Option<String>) {
        match end {
            Some(End::Canceled) => (Status::Canceled, None),
            Some(End::Failed(error)) => (Status::Failed, Some(error.clone())),
            Some(End::Interrupted) | None => (Status::Failed, Some("interrupted".to_owned())),
            Some(End::Completed) if self.outline.success == Some(false) => {
                let reason = self.outline.stop.clone().unwrap_or_default();
                let word = reason.to_lowercase();
                let broken_off = ["interrupt", "cancel", "abort"].iter().any(|part| word.contains(part));
                let error = self.outline.failure.clone().or(Some(reason)).filter(|error| !error.is_empty());
                (if broken_off { Status::Canceled } else { Status::Failed }, error)
            }
            Some(End::Completed) => (Status::Completed, None),
        }
    }

    /// What there is to say about the turns.
    pub fn warnings(&self, transcript: &Path) -> Vec<Warning> {
        let calls = |count: u64| match count {
            1 => "a tool call stands".to_owned(),
            many => format!("{many} tool calls stand"),
        };
        let said = [
            (self.moved, "in the most recent turn of the assistant, which is not the last turn"),
            (self.alone, "in a turn of the assistant's own, without words: the last turn was somebody else's"),
        ];
        let said = said.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, where_to)| Warning::new(transcript, format!("{} {where_to}", calls(count)))).collect()
    }
}

/// All tokens that were sent: devflow does not tell apart what came from a cache.
fn sent(Usage { input, cache_read, cache_write, .. }: Usage) -> u64 {
    [input, cache_read, cache_write].into_iter().flatten().fold(0, u64::saturating_add)
}
