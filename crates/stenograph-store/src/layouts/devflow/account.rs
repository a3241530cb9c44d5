//! The totals of a run: tokens by role, cost, how it ended, and which calls are in a turn that is not the last. This file
//! writes nothing.

use std::path::Path;

use stenograph::calls::Calls;
use stenograph::ledger::{CountedOutline, RowKind};
use stenograph::model::{Body, Event, Outline, Role, Tokens};
use stenograph::read::Sink;
use stenograph::repeat::CheckRepeats;
use stenograph::time::Time;

use super::RunStatus;
use crate::error::Error;
use crate::journal::{Author, Recording, RecordingEnd, author};
use crate::tail::Warning;

/// The totals of a run.
#[derive(Debug, Default)]
pub struct RunTotals {
    counted: CountedOutline,
    outline: Outline,
    /// When it ended.
    pub ended: Option<Time<'static>>,
    place: LastTurn,
    calls: Calls,
    /// Calls in a turn of the assistant that others follow.
    calls_in_earlier_turn: u64,
    /// Calls after another party's turn, which get their own turn.
    calls_in_own_turn: u64,
    /// Whether an assistant has spoken.
    answered: bool,
    /// Tokens that users and system prompts state themselves.
    user_stated_tokens: Option<u64>,
}

/// What the last turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum LastTurn {
    #[default]
    Elsewhere,
    Assistant,
    /// Tool results without a call, after an assistant's turn.
    ResultsAfterAssistant,
}

impl RunTotals {
    /// Computes the totals of a recording.
    pub fn of(recorded: &Recording) -> Result<RunTotals, Error> {
        let mut totals = CheckRepeats::new(RunTotals::default());
        let interrupted = recorded.ended == Some(RecordingEnd::Interrupted);
        recorded.read(&mut |event| {
            let own = author(event) == Author::Stop;
            // The time at which an interrupted recording is completed is not the time at which it ended.
            if !(own && interrupted) && event.time.is_some() {
                totals.sink.ended = event.time.clone().map(Time::into_owned);
            }
            if !own {
                totals.event(event);
            }
        })?;
        totals.finish();
        let mut totals = totals.sink;
        let (outline, ledger) = std::mem::take(&mut totals.counted).finish_with_ledger();
        totals.outline = outline;
        // A recorded run may state its total, which the sum of its turns need not reach.
        if ledger.entries.iter().any(|entry| entry.row.kind == RowKind::Run && !entry.row.tokens.is_zero()) {
            totals.user_stated_tokens = None;
        }
        Ok(totals)
    }

    fn add(&mut self, event: &Event<'_>) {
        match &event.body {
            // A tool has no tokens of its own.
            Body::ToolResult { .. } => self.counted.add_uncounted(event),
            _ => self.counted.add(event),
        }
        // The transcript leaves out a record that only repeats another one.
        if event.restates {
            return;
        }
        if let (Body::Message { role: Role::User | Role::System | Role::Developer, .. }, Some(usage)) =
            (&event.body, event.usage)
        {
            self.user_stated_tokens =
                Some(self.user_stated_tokens.unwrap_or(0).saturating_add(Tokens::of(&usage).all_input()));
        }
        match &event.body {
            Body::Message { role: Role::Assistant, .. } => (self.place, self.answered) = (LastTurn::Assistant, true),
            Body::Message { role: Role::Tool, .. } => self.result(),
            Body::Message { .. } | Body::Compaction { summary: Some(_) } => self.place = LastTurn::Elsewhere,
            Body::ToolCall { .. } => {
                self.calls.add(event);
                match self.place {
                    LastTurn::ResultsAfterAssistant => self.calls_in_earlier_turn += 1,
                    LastTurn::Assistant => {}
                    LastTurn::Elsewhere => {
                        self.calls_in_own_turn += u64::from(self.answered);
                        (self.place, self.answered) = (LastTurn::Assistant, true);
                    }
                }
            }
            Body::ToolResult { .. } => {
                let step = self.calls.add(event);
                if step.is_again || step.has_no_call {
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

    fn result(&mut self) {
        self.place = match self.place {
            LastTurn::Elsewhere => LastTurn::Elsewhere,
            LastTurn::Assistant | LastTurn::ResultsAfterAssistant => LastTurn::ResultsAfterAssistant,
        };
    }

    /// Tokens sent to the model: those that users and system prompts state, as devflow adds them up. Most agents state them
    /// with the answers instead; then those count.
    pub fn tokens_in(&self) -> u64 {
        self.user_stated_tokens.unwrap_or_else(|| Tokens::of(&self.outline.total).all_input())
    }

    /// Tokens that the assistant wrote.
    pub fn tokens_out(&self) -> u64 {
        self.outline.total.output.unwrap_or(0)
    }

    /// The cost that its events state.
    pub fn cost(&self) -> Option<f64> {
        self.outline.total.cost.map(|cost| cost.value())
    }

    /// How it ended, in devflow's words, and the error. The agent's own statement counts unless the recording ended otherwise.
    pub fn status(&self, end: Option<&RecordingEnd>) -> (RunStatus, Option<String>) {
        match end {
            Some(RecordingEnd::Canceled) => (RunStatus::Canceled, None),
            Some(RecordingEnd::Failed(error)) => (RunStatus::Failed, Some(error.clone())),
            Some(RecordingEnd::Interrupted) | None => (RunStatus::Failed, Some("interrupted".to_owned())),
            Some(RecordingEnd::Completed) if self.outline.success == Some(false) => {
                let Outline { failure, stop, .. } = &self.outline;
                let error = failure.clone().or_else(|| stop.clone()).filter(|error| !error.is_empty());
                let is_canceled = self.outline.was_interrupted();
                (if is_canceled { RunStatus::Canceled } else { RunStatus::Failed }, error)
            }
            Some(RecordingEnd::Completed) => (RunStatus::Completed, None),
        }
    }

    /// Warnings about the turns.
    pub fn warnings(&self, transcript: &Path) -> Vec<Warning> {
        let calls = |count: u64| match count {
            1 => "a tool call is".to_owned(),
            many => format!("{many} tool calls are"),
        };
        let warnings = [
            (self.calls_in_earlier_turn, "in the most recent assistant turn, which is not the last turn"),
            (
                self.calls_in_own_turn,
                "in a separate assistant turn without text, because the last turn is not the assistant's",
            ),
        ];
        let warnings = warnings.into_iter().filter(|(count, _)| *count > 0);
        warnings.map(|(count, where_to)| Warning::new(transcript, format!("{} {where_to}", calls(count)))).collect()
    }
}

impl Sink for RunTotals {
    fn event(&mut self, event: &Event<'_>) {
        self.add(event);
    }
}
