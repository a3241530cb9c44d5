//! `metadata.json`, and the same object in a transcript: what is known of a run, in the order and spelling of Go's struct.

use stenograph::formats::devflow::{ZERO_TIME, map, spelled};
use stenograph::json::Draft;

use super::Status;
use super::record::{COST, FLOW, INPUT, NODE, STARTED};
use crate::journal::Settings;

/// What is known of a run.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Its id.
    pub run: String,
    /// What was said of it beforehand.
    pub settings: Settings,
    /// What became of it.
    pub status: Status,
    /// When it ended.
    pub ended: Option<String>,
    /// Tokens of users and system prompts, and of what was sent with them.
    pub tokens_in: u64,
    /// Tokens of the assistant.
    pub tokens_out: u64,
    /// What its events say that it cost.
    pub cost: Option<f64>,
    /// How many turns it has.
    pub turn_count: u64,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Metadata {
    /// A run that has just begun.
    pub fn running(run: &str, settings: &Settings) -> Metadata {
        Metadata {
            run: run.to_owned(),
            settings: settings.clone(),
            status: Status::Running,
            ended: None,
            tokens_in: 0,
            tokens_out: 0,
            cost: None,
            turn_count: 0,
            duration_ms: None,
            error: None,
        }
    }

    /// The object, on one line.
    pub fn json(&self) -> String {
        let said = |key: &str| self.settings.get(key).map(String::as_str);
        let mut draft = Draft::new();
        draft.set_str("runId", &self.run);
        draft.set_str("flowId", said(FLOW).unwrap_or_default());
        draft.set_opt("nodeId", said(NODE).filter(|node| !node.is_empty()));
        if let Some(input) = said(INPUT) {
            draft.set("input", map(input));
        }
        draft.set_str("startedAt", said(STARTED).unwrap_or(ZERO_TIME));
        draft.set_str("endedAt", self.ended.as_deref().unwrap_or(ZERO_TIME));
        draft.set_str("status", self.status.name());
        draft.set("totalTokensIn", self.tokens_in.to_string());
        draft.set("totalTokensOut", self.tokens_out.to_string());
        let counted = || self.cost.unwrap_or(0.0).to_string();
        draft.set("totalCost", said(COST).map_or_else(counted, str::to_owned));
        draft.set("turnCount", self.turn_count.to_string());
        draft.set_number("durationMs", self.duration_ms);
        draft.set_opt("error", self.error.as_deref().filter(|error| !error.is_empty()));
        draft.render(None)
    }

    /// The file, as Go spells it.
    pub fn document(&self) -> String {
        spelled(&self.json())
    }
}
