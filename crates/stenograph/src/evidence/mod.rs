//! Evidence: statements of a single record beyond the fields of its event, such as exit codes in texts, refusals, reports on
//! calls, permission modes and nested records. All of it is derived: this module computes it from one event and the tables of
//! its format ([`FormatInfo`](crate::model::FormatInfo)); it is never written back and never compared. Folds such as
//! [`crate::calls`] interpret it.
//!
//! Only this module looks into the extra fields of an event.

mod agents;
mod arguments;
mod compaction;
mod files;
mod history;
mod hosted;
mod input;
mod model_calls;
mod nested;
mod notice;
mod permission;
mod plan;
mod question;
mod report;
mod result;
mod script;
mod session_facts;
mod task;
mod user_message;

pub(crate) use agents::AgentEvidence;
pub use arguments::{CallArguments, CallKind, UserRequest};
pub(crate) use arguments::{PATTERN_KEYS, URL_KEYS};
pub(crate) use compaction::CompactionDetails;
pub use files::{Touch, TouchHow};
pub(crate) use files::{applied_patch, is_path, joined, touches, verb};
pub use history::HistoryBase;
pub(crate) use hosted::hosted_status;
pub(crate) use input::{COMMAND_KEYS, COMMAND_SIZE_MAX, CallInput, PATH_KEYS, flat, fold_key, is_named, text_under};
pub(crate) use model_calls::{
    NotACall, RunningTotal, do_forks_rename, forwarded_calls, has_invalid_count, is_history_elsewhere, is_search,
    not_a_call, repeated_session, request, running_total, stated_calls, states_model_calls,
};
pub(crate) use nested::nested_source;
pub use nested::{NestedRecord, is_progress, nested, nested_events};
pub(crate) use notice::JobNotice;
pub(crate) use permission::{Judgement, permission_mode};
pub(crate) use plan::PLAN_ITEMS_MAX;
pub use plan::{PlanChange, Todo, TodoProgress};
pub use question::UserQuestion;
pub(crate) use report::CallReport;
pub use result::Evidence;
pub(crate) use result::{created_file, output_without_header};
pub use session_facts::{RateLimit, ToolSchema, instructions, moved_from, rate_limits, tool_schemas};
pub(crate) use session_facts::{added_context, request_rank};
pub use task::Task;
pub use user_message::UserMessage;

use crate::model::{CallWords, Event, ExtraFields, ScriptWords};

/// The tables of the formats that an event comes from, each with its extra fields.
fn words<'e, 'a>(event: &'e Event<'a>) -> impl Iterator<Item = (&'static CallWords, &'e ExtraFields<'a>)> {
    event.extra.known().map(|(info, extra)| (&info.calls, extra))
}

/// The words of the scripts that call tools in the format of this event.
pub(crate) fn script_words(event: &Event<'_>) -> Option<ScriptWords> {
    words(event).find_map(|(words, _)| words.script)
}
