//! Why a model stopped: the one table of the words that services and agents use for the same few reasons.

use serde::{Deserialize, Serialize};

/// Why a model, a turn or a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StopReason {
    /// It did not stop: it waits for a tool, or continues.
    Continues,
    /// The turn is over, and the user is next.
    Waiting,
    /// The run is over.
    Ended,
    /// A limit cut the answer off.
    CutOff,
    /// The model refused.
    Refused,
    /// The user interrupted it.
    Interrupted,
    /// An error ended it.
    Error,
}

impl StopReason {
    /// Whether the end of a turn or a run is a failure. A user who interrupts an agent does not make it fail, in any format.
    pub fn is_failure(reason: Option<&str>, success: Option<bool>) -> bool {
        success == Some(false) && reason.map(StopReason::of) != Some(StopReason::Interrupted)
    }

    /// The meaning of a word of a source. An unknown word is an end.
    pub fn of(word: &str) -> StopReason {
        let word = word.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
        match word.as_str() {
            "tool_use" | "tool_calls" | "function_call" | "pause_turn" | "running" => StopReason::Continues,
            "end_turn" | "stop" | "stop_sequence" => StopReason::Waiting,
            "length" => StopReason::CutOff,
            _ if has(&["max_tokens", "max_output_tokens", "max_turns", "window_exceeded"]) => StopReason::CutOff,
            _ if has(&["refus", "content_filter", "safety"]) => StopReason::Refused,
            _ if has(&["interrupt", "cancel", "abort"]) => StopReason::Interrupted,
            _ if has(&["error", "fail"]) => StopReason::Error,
            _ => StopReason::Ended,
        }
    }
}
