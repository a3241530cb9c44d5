//! The updates of a session in the Agent Client Protocol, by which an agent shows its work to an editor. Several formats have records
//! with them under `params.update`.

use super::record_map::{CallMap, ErrorAt, InputAt, PartMap, RecordField, RecordMap, ResultMap, Speaks, Words};
use crate::model::Role;

/// The path of the kind of an update.
pub const KIND: &str = "params.update.sessionUpdate";

/// The table of an update that the protocol describes.
pub fn map_of(word: &Words<'_>) -> Option<&'static RecordMap> {
    match word(KIND)?.as_str() {
        "user_message_chunk" => Some(&USER),
        "agent_message_chunk" => Some(&ANSWER),
        "agent_thought_chunk" => Some(&THOUGHT),
        "tool_call" => Some(&CALL),
        "tool_call_update" => match word("params.update.status").as_deref() {
            Some("completed" | "failed") => Some(&RESULT),
            _ => Some(&NOTICE),
        },
        "plan" | "usage_update" | "available_commands_update" | "current_mode_update" | "config_option_update" => {
            Some(&NOTICE)
        }
        "session_info_update" => Some(&INFO),
        _ => None,
    }
}

const UPDATE: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "params.sessionId"),
        (RecordField::Millis, "params._meta.agentTimestampMs"),
        (RecordField::Group, "params.update.messageId"),
        (RecordField::Model, "params.update._meta.modelId"),
    ],
    parts: &[PartMap::Content("params.update.content.text", &[])],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..UPDATE };
static ANSWER: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..UPDATE };
static THOUGHT: RecordMap = RecordMap { speaks: Speaks::Thinking, ..UPDATE };
static NOTICE: RecordMap = RecordMap { parts: &[PartMap::Named(KIND)], ..UPDATE };
static INFO: RecordMap =
    RecordMap { parts: &[PartMap::Named(KIND), PartMap::Fact("title", "params.update.title", &[])], ..UPDATE };

static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "params.update.toolCallId",
        name: "params.update.title",
        input: InputAt::Maybe("params.update.rawInput"),
    })],
    ..UPDATE
};

static RESULT: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "params.sessionId"),
        (RecordField::Millis, "params._meta.agentTimestampMs"),
        (RecordField::Cwd, "params.update.rawOutput.current_dir"),
    ],
    parts: &[PartMap::Result(ResultMap {
        call: "params.update.toolCallId",
        name: "",
        content: "params.update.content",
        texts: &["content.text"],
        error: ErrorAt::Word("params.update.status", &["failed"], &[]),
    })],
    ..RecordMap::NONE
};
