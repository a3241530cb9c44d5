//! Saves an audit and the state of the fold, to continue it after the next event. [`Audit`] serialises as the report that people
//! get (`json.rs`); the saved form has every field. Only the program that saved it reads it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::report::{
    Agent, Approval, Audit, Call, Capped, Compaction, ContextSize, End, Failure, Fault, File, LastMessage, Phase,
    Thread, Todos, Tool,
};
use crate::turns::SessionTurn;

/// The saved form of an [`Audit`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Audit")]
pub(crate) struct SavedAudit {
    session: Option<String>,
    title: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    models: Vec<String>,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    events: u64,
    asked: u64,
    turns: Capped<SessionTurn>,
    answered: u64,
    end: End,
    threads: Vec<Thread>,
    tools: Vec<Tool>,
    calls: Capped<Call>,
    commands: u64,
    files: Capped<File>,
    last: Option<LastMessage>,
    errors: Capped<Fault>,
    approvals: Capped<Approval>,
    agents: Capped<Agent>,
    jobs_more: u64,
    todos: Option<Todos>,
    phases: Capped<Phase>,
    compactions: Capped<Compaction>,
    context: ContextSize,
    failure: Option<Failure>,
}

/// A set of hashes, saved as Base64: a long session has hundreds of thousands of them.
pub(super) mod hashes {
    use super::*;

    pub fn serialize<S: Serializer>(hashes: &HashSet<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashSet<u64>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        let (hashes, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(D::Error::custom("an incomplete hash"));
        }
        Ok(hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect())
    }
}
