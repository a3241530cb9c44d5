//! Gemini CLI: the sessions of both generations, one document or JSON lines. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, Foreign, HistoryMap, InputAt, InputHas, MappedFormat, MappedPlace, OutputHas, PartMap, PartsForm,
    RecordField, RecordMap, Restates, ResultMap, Speaks, TEXT, UsageMap, Words,
};
use super::record_templates::RecordTemplates;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::json::Object;
use crate::model::{
    CallWords, ExitCodeAt, FolderAt, FolderFile, Placement, ProjectName, Role, SessionIdKind, UsageWords, Verdict,
};

const NAME: &str = "gemini-cli";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Gemini CLI's sessions",
    framing: Framing::LinesOrItems(Items::Array("messages")),
    extension: "jsonl",
    homes: &[
        "{GEMINI_CLI_HOME|~}/.gemini/tmp/<project>/chats/session-*.jsonl",
        "{GEMINI_CLI_HOME|~}/.gemini/tmp/<project>/chats/session-*.json",
        "{GEMINI_CLI_HOME|~}/.gemini/tmp/<project>/chats/<session>/<thread>.jsonl",
    ],
    folder_files: &[FolderFile { path: "../.project_root", folder: FolderAt::Text }],
    resume: Some("gemini --resume {session}"),
    spec: "google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    placement: Some(Placement {
        path: "{GEMINI_CLI_HOME|~}/.gemini/tmp/<project>/chats/session-<minute>-<id8>.jsonl",
        project: ProjectName::Marked(".project_root"),
        id: SessionIdKind::RandomUuid,
        folders: &[],
        sessions: &["sessionId", "$set.sessionId"],
        forks: &[],
    }),
    record_schema: &[
        "type=user: id text, timestamp text, content list, content[].text text?",
        "type=gemini: id text, timestamp text, content text|list, toolCalls[].id text, toolCalls[].name text, \
         toolCalls[].args object, toolCalls[].status text",
        "type=error: id text, timestamp text, content text",
        "kind=main: sessionId text, projectHash text, startTime text, lastUpdated text",
    ],
    restated: &["displayContent", "toolCalls.resultDisplay"],
    changing_lines: &["Process Group PGID: "],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Tail("Exit Code: ")],
        interruption_prefixes: &["[Operation Cancelled] Reason: "],
        verdict_prefixes: &[
            ("[Operation Cancelled] Reason: User did not allow tool call", Verdict::Denied),
            ("[Operation Cancelled] Reason: User denied execution", Verdict::Denied),
            ("Tool execution denied by policy", Verdict::Refused),
        ],
        ..CallWords::NONE
    },
    usage: UsageWords { counters: &[("tokens", &["input", "output", "cached", "thoughts"])], ..UsageWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `gemini-cli`.
pub static GEMINI_CLI: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: Some(Foreign::Templates(&TEMPLATES)) };

/// Gemini CLI shows the model the answers with their calls and results; messages of the user with results would repeat them. It
/// leaves out messages of the user that begin with `/` or `?`.
static TEMPLATES: RecordTemplates = RecordTemplates {
    header: r#"{"sessionId":"<session>","projectHash":"<cwd digest>","startTime":"<time>","lastUpdated":"<time>","kind":"main",
        "summary":"<title>"}"#,
    user: r#"{"id":"<id>","timestamp":"<time>","type":"user","content":"<content>"}"#,
    answer: r#"{"id":"<id>","timestamp":"<time>","type":"gemini","content":"<text|\"\">","thoughts":"<thoughts>",
        "tokens":{"input":"<all input>","output":"<visible output|0>","cached":"<cache read|0>","thoughts":"<reasoning|0>",
        "tool":0,"total":"<total|0>"},"model":"<model|unknown>"}"#,
    answer_with_calls: r#"{"id":"<id>","timestamp":"<time>","type":"gemini","content":"<text|\"\">","thoughts":"<thoughts>",
        "tokens":{"input":"<all input>","output":"<visible output|0>","cached":"<cache read|0>","thoughts":"<reasoning|0>",
        "tool":0,"total":"<total|0>"},"model":"<model|unknown>","toolCalls":"<calls>"}"#,
    compaction: r#"{"$set":{"messages":[{"id":"<id>","timestamp":"<time>","type":"user","content":[{"text":"<text>"}]}],
        "lastUpdated":"<time>"}}"#,
    failure: r#"{"id":"<id>","timestamp":"<time>","type":"error","content":"<text>"}"#,
    text: r#"{"text":"<text>"}"#,
    picture: r#"{"inlineData":{"mimeType":"<media>","data":"<data>"}}"#,
    thought: r#"{"subject":"","description":"<text>"}"#,
    call: r#"{"id":"<call>","name":"<name>","args":"<arguments>","result":[{"functionResponse":{"id":"<call|>",
        "name":"<name|>","response":{"output":"<result>","error":"<failure>"}}}],"status":"<error?error:success>",
        "timestamp":"<time>"}"#,
    ..RecordTemplates::NONE
};

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("type").as_deref() {
            Some("user") => Some(&USER),
            Some("gemini") => Some(&ANSWER),
            Some("error") => Some(&ERROR),
            Some("warning") => Some(&WARNING),
            Some("info") => Some(&INFORMATION),
            Some(_) => None,
            None if word("projectHash").is_none() => Some(&PATCH),
            None if word("kind").as_deref() == Some("subagent") => Some(&SUBAGENT),
            None => Some(&HEAD),
        },
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "sessionId"), (RecordField::Time, "startTime")],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "summary", &[])],
    ..RecordMap::NONE
};

/// The path has the session of the agent that called this one.
static SUBAGENT: RecordMap =
    RecordMap { fields: &[(RecordField::Thread, "sessionId"), (RecordField::Time, "startTime")], ..HEAD_OF };
const HEAD_OF: RecordMap =
    RecordMap { parts: &[PartMap::Stated("session"), PartMap::Fact("title", "summary", &[])], ..RecordMap::NONE };

static TAIL: RecordMap =
    RecordMap { parts: &[PartMap::Stated("session_end"), PartMap::Fact("title", "summary", &[])], ..RecordMap::NONE };

/// A change of the header, all messages once more, or a step back to before a message.
static PATCH: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "$set.sessionId"), (RecordField::Time, "$set.lastUpdated")],
    parts: &[
        PartMap::StatedAt("session_update", "$set"),
        PartMap::Fact("title", "$set.summary", &[]),
        PartMap::History(
            "$set.messages",
            HistoryMap {
                speaker: "type",
                roles: &[("user", Role::User), ("gemini", Role::Assistant)],
                content: "content",
            },
        ),
        PartMap::Fact("rewind_to", "$rewindTo", &[]),
    ],
    ..RecordMap::NONE
};

const MESSAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Id, "id"), (RecordField::Time, "timestamp"), (RecordField::Model, "model")],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap {
    parts: &[PartMap::Parts("content", PartsForm::ListOrText)],
    speaks: Speaks::As(Role::User),
    restates: Restates::Results,
    ..MESSAGE
};

static ANSWER: RecordMap = RecordMap {
    usage: Some(UsageMap {
        input: &["tokens.input"],
        output: &["tokens.output"],
        cache_read: &["tokens.cached"],
        reasoning: &["tokens.thoughts"],
        input_has: InputHas::Cache,
        output_has: OutputHas::NoThinking,
        ..UsageMap::NONE
    }),
    parts: &[
        PartMap::Thinking("thoughts", &["description"]),
        PartMap::Parts("content", PartsForm::ListOrText),
        PartMap::CallsWithResults(
            "toolCalls",
            CallMap { id: "id", name: "name", input: InputAt::Maybe("args") },
            ResultMap {
                call: "",
                name: "",
                content: "result",
                texts: &["functionResponse.response.output", "functionResponse.response.error", "text"],
                error: ErrorAt::Word("status", &["error", "cancelled"], &["success"]),
            },
        ),
    ],
    speaks: Speaks::As(Role::Assistant),
    restates: Restates::TextBesideCalls,
    ..MESSAGE
};

const NOTICE: &[PartMap] = &[PartMap::Content("content", TEXT)];
static ERROR: RecordMap = RecordMap { parts: NOTICE, speaks: Speaks::Failure, ..MESSAGE };
static WARNING: RecordMap = RecordMap { parts: NOTICE, speaks: Speaks::Fact("warning"), ..MESSAGE };
static INFORMATION: RecordMap = RecordMap { parts: NOTICE, speaks: Speaks::Fact("info"), ..MESSAGE };

fn sniff(head: &Head<'_>) -> Sniff {
    let has_header = |object: &Object<'_>| {
        object.has("sessionId") && object.has("projectHash") && (object.has("startTime") || object.has("messages"))
    };
    let objects = head.objects();
    let is_answer = |object: &Object<'_>| {
        object.peek_str("type").as_deref() == Some("gemini") && object.has("id") && object.has("content")
    };
    if head.document().as_ref().is_some_and(has_header) {
        Sniff::Certain
    } else if objects.iter().any(is_answer) {
        Sniff::Likely
    } else {
        Sniff::No
    }
}
