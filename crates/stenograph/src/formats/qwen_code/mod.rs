//! Qwen Code: the records of a session, one per line. See `README.md` beside this file.

use super::record_map::{
    Foreign, InputHas, MappedFormat, MappedPlace, PartMap, PartsForm, RecordField, RecordMap, Speaks, UsageMap, Words,
};
use super::record_templates::RecordTemplates;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{
    CallWords, ExitCodeAt, Placement, ProjectName, Role, SessionIdKind, UsageWords, UserWords, Verdict,
};

const NAME: &str = "qwen-code";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Qwen Code's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "~/.qwen/projects/<project>/chats/<session>.jsonl",
        "~/.qwen/projects/<project>/subagents/<session>/agent-<thread>.jsonl",
        "~/.qwen/tmp/<project>/chats/<session>.jsonl",
    ],
    resume: Some("qwen --resume {session}"),
    spec: "QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts",
    placement: Some(Placement {
        path: "~/.qwen/projects/<project>/chats/<session>.jsonl",
        project: ProjectName::Hyphens,
        id: SessionIdKind::RandomUuid,
        folders: &["cwd"],
        sessions: &["sessionId"],
        forks: &["user: forkedFrom.sessionId", "assistant: forkedFrom.sessionId"],
    }),
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    record_schema: &[
        "*: uuid text, parentUuid text|null, sessionId text, timestamp text, cwd text, version text, type text",
        "type=user: message.role text, message.parts list",
        "type=assistant: model text, message.role text, message.parts list",
        "type=tool_result: message.role text, message.parts[].functionResponse.id text, \
         message.parts[].functionResponse.name text, toolCallResult.callId text, toolCallResult.status text",
    ],
    spelling: &["parentUuid"],
    restated: &["toolCallResult.resultDisplay"],
    user: UserWords { authors: &[("provenance", &["real_user"])], ..UserWords::NONE },
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("toolCallResult.resultDisplay.exitCode"), ExitCodeAt::Tail("Exit Code: ")],
        interruption_prefixes: &["[Operation Cancelled] Reason: "],
        verdict_prefixes: &[("[Operation Cancelled] Reason: User did not allow tool call", Verdict::Denied)],
        mode_fields: &["systemPayload.mode"],
        compaction_tokens: Some(("systemPayload.info.originalTokenCount", "systemPayload.info.newTokenCount")),
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[(
            "usageMetadata",
            &["promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount"],
        )],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `qwen-code`.
pub static QWEN_CODE: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: Some(Foreign::Templates(&TEMPLATES)) };

/// Qwen Code shows the model the messages of the records from the last one back to the first. After a compression it begins with
/// the history in it.
static TEMPLATES: RecordTemplates = RecordTemplates {
    user: r#"{"uuid":"<id>","parentUuid":"<parent|null>","sessionId":"<session>","timestamp":"<time>",
        "type":"user","provenance":"real_user","cwd":"<cwd|/>","version":"<version|unknown>","gitBranch":"<branch|>",
        "message":{"role":"user","parts":"<content>"}}"#,
    answer: r#"{"uuid":"<id>","parentUuid":"<parent|null>","sessionId":"<session>","timestamp":"<time>",
        "type":"assistant","provenance":"assistant_output","cwd":"<cwd|/>","version":"<version|unknown>","gitBranch":"<branch|>",
        "model":"<model|unknown>","message":{"role":"model","parts":"<content>"},"usageMetadata":{
        "promptTokenCount":"<all input>","candidatesTokenCount":"<output|0>","thoughtsTokenCount":"<reasoning|0>",
        "totalTokenCount":"<total|0>","cachedContentTokenCount":"<cache read|0>"}}"#,
    result: r#"{"uuid":"<id>","parentUuid":"<parent|null>","sessionId":"<session>","timestamp":"<time>",
        "type":"tool_result","provenance":"tool_result","cwd":"<cwd|/>","version":"<version|unknown>","gitBranch":"<branch|>",
        "message":{"role":"user","parts":[{"functionResponse":{"id":"<call>","name":"<name|unknown>",
        "response":{"output":"<result>","error":"<failure>"}}}]},
        "toolCallResult":{"callId":"<call>","status":"<error?error:success>"}}"#,
    compaction: r#"{"uuid":"<id>","parentUuid":"<parent|null>","sessionId":"<session>","timestamp":"<time>",
        "type":"system","provenance":"system","cwd":"<cwd|/>","version":"<version|unknown>","gitBranch":"<branch|>",
        "subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":0,"newTokenCount":0,
        "compressionStatus":1},"compressedHistory":[]}}"#,
    title: r#"{"uuid":"<id>","parentUuid":"<parent|null>","sessionId":"<session>","timestamp":"<time>",
        "type":"system","provenance":"system","cwd":"<cwd|/>","version":"<version|unknown>","gitBranch":"<branch|>",
        "subtype":"custom_title","systemPayload":{"customTitle":"<text>","titleSource":"manual"}}"#,
    text: r#"{"text":"<text>"}"#,
    picture: r#"{"inlineData":{"mimeType":"<media>","data":"<data>"}}"#,
    thought: r#"{"text":"<text>","thought":true}"#,
    call: r#"{"functionCall":{"id":"<call>","name":"<name>","args":"<arguments>"}}"#,
    ..RecordTemplates::NONE
};

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("type")?.as_str() {
        "user" => Some(&USER),
        "assistant" => Some(&ASSISTANT),
        "tool_result" => Some(&RESULT),
        "system" => match word("subtype")?.as_str() {
            "chat_compression" => Some(&COMPRESSION),
            "custom_title" => Some(&TITLE),
            "slash_command" => Some(&COMMAND),
            "notification" => Some(&NOTIFICATION),
            _ => Some(&FACT),
        },
        _ => None,
    }
}

const RECORD: RecordMap = RecordMap {
    fields: &[
        (RecordField::Id, "uuid"),
        (RecordField::Parent, "parentUuid"),
        (RecordField::Session, "sessionId"),
        (RecordField::Thread, "agentId"),
        (RecordField::Time, "timestamp"),
        (RecordField::Cwd, "cwd"),
        (RecordField::Branch, "gitBranch"),
        (RecordField::Version, "version"),
        (RecordField::Model, "model"),
        (RecordField::ForkSession, "forkedFrom.sessionId"),
        (RecordField::ForkRecord, "forkedFrom.messageUuid"),
    ],
    parts: &[PartMap::Parts("message.parts", PartsForm::List)],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..RECORD };
static RESULT: RecordMap = RecordMap { speaks: Speaks::As(Role::Tool), ..RECORD };

static ASSISTANT: RecordMap = RecordMap {
    usage: Some(UsageMap {
        input: &["usageMetadata.promptTokenCount"],
        output: &["usageMetadata.candidatesTokenCount"],
        cache_read: &["usageMetadata.cachedContentTokenCount"],
        reasoning: &["usageMetadata.thoughtsTokenCount"],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    speaks: Speaks::As(Role::Assistant),
    ..RECORD
};

/// Some facts repeat what other records state: `ui_telemetry` the usage of calls.
static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("subtype")], ..RECORD };
static COMPRESSION: RecordMap = RecordMap { parts: &[PartMap::Compacted("")], ..RECORD };
static TITLE: RecordMap = RecordMap { parts: &[PartMap::Fact("title", "systemPayload.customTitle", &[])], ..RECORD };
static COMMAND: RecordMap =
    RecordMap { parts: &[PartMap::Fact("slash_command", "systemPayload.rawCommand", &[])], ..RECORD };
static NOTIFICATION: RecordMap =
    RecordMap { parts: &[PartMap::Fact("notification", "systemPayload.displayText", &[])], ..RECORD };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_record = |object: &Object<'_>| {
        ["uuid", "parentUuid", "sessionId", "timestamp", "type", "cwd"].iter().all(|key| object.has(key))
    };
    let is_own = |object: &Object<'_>| {
        object.has("systemPayload") || object.peek_object("message").is_some_and(|message| message.has("parts"))
    };
    match !objects.is_empty() && objects.iter().all(is_record) && objects.iter().any(is_own) {
        true => Sniff::Certain,
        false => Sniff::No,
    }
}
