//! `metadata.json`, and the same object in a transcript: the facts about a run, in the order and notation of Go's struct.

use stenograph::formats::devflow::{ZERO_TIME, map, spelled};
use stenograph::json::Draft;

use super::RunStatus;
use super::record::{COST, FLOW, INPUT, NODE, STARTED};
use crate::journal::Settings;

/// The facts about a run.
#[derive(Clone, Debug)]
pub struct RunMetadata {
    /// Its id.
    pub run: String,
    /// Its settings.
    pub settings: Settings,
    /// Its status.
    pub status: RunStatus,
    /// When it ended.
    pub ended: Option<String>,
    /// Tokens of users and system prompts, and of what was sent with them.
    pub tokens_in: u64,
    /// Tokens of the assistant.
    pub tokens_out: u64,
    /// The cost that its events state.
    pub cost: Option<f64>,
    /// The number of turns.
    pub turn_count: u64,
    /// Its duration.
    pub duration_ms: Option<u64>,
    /// Its error.
    pub error: Option<String>,
}

impl RunMetadata {
    /// A run that has just begun.
    pub fn running(run: &str, settings: &Settings) -> RunMetadata {
        RunMetadata {
            run: run.to_owned(),
            settings: settings.clone(),
            status: RunStatus::Running,
            ended: None,
            tokens_in: 0,
            tokens_out: 0,
            cost: None,
            turn_count: 0,
            duration_ms: None,
            error: None,
        }
    }

    /// The object on one line.
    pub fn json(&self) -> String {
        let setting = |key: &str| self.settings.get(key).map(String::as_str);
        let mut draft = Draft::new();
        draft.set_str("runId", &self.run);
        draft.set_str("flowId", setting(FLOW).unwrap_or_default());
        draft.set_opt("nodeId", setting(NODE).filter(|node| !node.is_empty()));
        if let Some(input) = setting(INPUT) {
            draft.set("input", map(input));
        }
        draft.set_str("startedAt", setting(STARTED).unwrap_or(ZERO_TIME));
        draft.set_str("endedAt", self.ended.as_deref().unwrap_or(ZERO_TIME));
        draft.set_str("status", self.status.name());
        draft.set("totalTokensIn", self.tokens_in.to_string());
        draft.set("totalTokensOut", self.tokens_out.to_string());
        let counted = || self.cost.unwrap_or(0.0).to_string();
        draft.set("totalCost", setting(COST).map_or_else(counted, str::to_owned));
        draft.set("turnCount", self.turn_count.to_string());
        draft.set_number("durationMs", self.duration_ms);
        draft.set_opt("error", self.error.as_deref().filter(|error| !error.is_empty()));
        draft.render(None)
    }

    /// The file in Go's notation.
    pub fn document(&self) -> String {
        spelled(&self.json())
    }
}
