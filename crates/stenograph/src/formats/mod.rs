//! The built-in formats. [`FORMATS`] is the only list of them: [`Registry::built_in`], help, documents, tests and laws use it.

use crate::Registry;
use crate::format::Format;
use crate::model::Origin;
use crate::text::Str;

pub mod acp;
pub mod aider;
pub(crate) mod anthropic;
pub mod anthropic_messages;
pub mod atif;
mod blocks;
pub(crate) mod chat;
pub mod chibi;
pub mod chibi_inbox;
pub mod chibi_markdown;
pub mod chibi_requests;
pub mod chibi_responses;
pub mod claude_code;
pub mod claude_events;
pub mod cline;
pub mod codex;
pub mod codex_exec;
pub mod r#continue;
pub mod copilot;
pub mod cycod_trajectory;
pub mod devflow;
mod document;
pub mod droid;
pub mod droid_settings;
#[cfg(test)]
mod format_template;
pub mod gemini_cli;
pub mod goodvibes_telemetry;
pub mod goodvibes_tracking;
pub mod goose;
pub mod gptme;
pub mod grok;
pub mod grok_history;
pub mod hermes;
pub mod inspect;
pub mod kilo;
pub mod kimi;
pub mod kimi_code;
pub mod kimi_context;
pub mod leslie;
pub mod mini_swe_agent;
pub mod openai_agents;
pub mod openai_chat;
pub mod openai_responses;
pub mod opencode;
pub mod opencode_export;
mod opencode_rows;
pub mod openhands;
pub mod openhands_trajectory;
pub mod otlp;
pub mod peers;
pub mod pi;
mod placeholder;
pub mod qwen_code;
mod record_map;
mod record_templates;
mod session_updates;
pub mod sharegpt;
pub mod steno;
pub mod swe_agent;

/// Every format, in the order in which users see them.
pub static FORMATS: &[&dyn Format] = &[
    &steno::Steno,
    &chibi::Chibi,
    &chibi_markdown::ChibiMarkdown,
    &chibi_inbox::ChibiInbox,
    &chibi_requests::ChibiRequests,
    &chibi_responses::ChibiResponses,
    &claude_events::ClaudeEvents,
    &goodvibes_tracking::GoodvibesTracking,
    &goodvibes_telemetry::GoodvibesTelemetry,
    &claude_code::ClaudeCode,
    &openai_chat::OpenaiChat,
    &cycod_trajectory::CycodTrajectory,
    &devflow::Devflow,
    &leslie::Leslie,
    &codex::Codex,
    &codex_exec::CODEX_EXEC,
    &atif::ATIF,
    &inspect::INSPECT,
    &cline::CLINE,
    &mini_swe_agent::MINI_SWE_AGENT,
    &swe_agent::SWE_AGENT,
    &r#continue::CONTINUE,
    &gptme::GPTME,
    &grok::GROK,
    &grok_history::GROK_HISTORY,
    &openhands::OPENHANDS,
    &openhands_trajectory::OPENHANDS_TRAJECTORY,
    &aider::Aider,
    &copilot::COPILOT,
    &droid::DROID,
    &droid_settings::DROID_SETTINGS,
    &gemini_cli::GEMINI_CLI,
    &qwen_code::QWEN_CODE,
    &kimi::KIMI,
    &kimi_context::KIMI_CONTEXT,
    &kimi_code::KIMI_CODE,
    &pi::Pi,
    &opencode::OPENCODE,
    &opencode_export::OPENCODE_EXPORT,
    &kilo::KILO,
    &goose::GOOSE,
    &hermes::HERMES,
    &openai_agents::OPENAI_AGENTS,
    &anthropic_messages::ANTHROPIC_MESSAGES,
    &openai_responses::OPENAI_RESPONSES,
    &otlp::Otlp,
    &acp::ACP,
    &sharegpt::SHAREGPT,
];

/// The origin with that name in a native stream. A name that is not built in stays a name: origins are equal if their names are.
pub fn origin(name: Str<'_>) -> Origin<'_> {
    match Registry::built_in().named(&name) {
        Some(format) => Origin::Known(format.info()),
        None => Origin::Unknown(name),
    }
}
