//! The words and fields by which an agent marks what came of a call: exit codes, refusals, jobs that go on. These are tables only;
//! [`crate::evidence`] is the one place that reads records with them.

use super::{Reader, Want};

/// The words and fields by which an agent marks what came of a call. A field is a path in what no field of the model has a place for.
#[derive(Clone, Copy, Debug)]
pub struct CallWords {
    /// The words of scripts that call tools.
    pub script: Option<ScriptWords>,
    /// Tools that run where the model runs, so that no record has their results; each with the field of the call that states its status.
    pub hosted_tools: &'static [(&'static str, &'static str)],
    /// Where a result states the exit code of a command.
    pub exit_codes: &'static [ExitCodeAt],
    /// Prefixes of results that failed although no field of the record says so.
    pub failure_prefixes: &'static [&'static str],
    /// Prefixes of results of interrupted calls.
    pub interruption_prefixes: &'static [&'static str],
    /// Prefixes of user messages by which the agent states that its user interrupted the run.
    pub interruption_messages: &'static [&'static str],
    /// Fields of results that are true if somebody interrupted the call.
    pub interrupted_fields: &'static [&'static str],
    /// Prefixes of results that a person or a rule gave instead of the tool.
    pub verdict_prefixes: &'static [(&'static str, Verdict)],
    /// Fields of results that exist only if the call was not allowed, each with the word it contains if the user refused.
    pub denial_fields: &'static [(&'static str, &'static str)],
    /// Words in a result that precede the name of a job that goes on.
    pub job_prefixes: &'static [&'static str],
    /// Fields of results with the name of such a job.
    pub job_fields: &'static [&'static str],
    /// Fields of results with the state of another agent.
    pub agent_state_fields: &'static [&'static str],
    /// Fields of results with the kind of another agent.
    pub agent_kind_fields: &'static [&'static str],
    /// Fields of results that say whether the call created its file, each with the word for yes.
    pub creation_fields: &'static [(&'static str, &'static str)],
    /// Fields of any record with the permission mode.
    pub mode_fields: &'static [&'static str],
    /// Facts whose content is the permission mode.
    pub mode_facts: &'static [&'static str],
    /// Facts that report on a call.
    pub reports: &'static [ReportPaths],
    /// Facts by which a person or a rule judges a call.
    pub judgements: &'static [JudgementPaths],
    /// Facts that hold a whole record of a side conversation.
    pub nested: Option<NestedPaths>,
    /// Reads records of the format that are inside other records.
    pub nested_reader: Option<fn(Want) -> Box<dyn Reader>>,
    /// The words of messages that only report on a job.
    pub notice: Option<NoticeWords>,
    /// Fields of a compaction with the tokens before and after it.
    pub compaction_tokens: Option<(&'static str, &'static str)>,
    /// Fields of a compaction with the ids of records that stay in the context.
    pub preserved_ids: &'static [&'static str],
    /// Fields of a compaction with the records that make up the context from then on.
    pub preserved_records: &'static [&'static str],
}

impl CallWords {
    /// No words.
    pub const NONE: CallWords = CallWords {
        script: None,
        hosted_tools: &[],
        exit_codes: &[],
        failure_prefixes: &[],
        interruption_prefixes: &[],
        interruption_messages: &[],
        interrupted_fields: &[],
        verdict_prefixes: &[],
        denial_fields: &[],
        job_prefixes: &[],
        job_fields: &[],
        agent_state_fields: &[],
        agent_kind_fields: &[],
        creation_fields: &[],
        mode_fields: &[],
        mode_facts: &[],
        reports: &[],
        judgements: &[],
        nested: None,
        nested_reader: None,
        notice: None,
        compaction_tokens: None,
        preserved_ids: &[],
        preserved_records: &[],
    };
}

/// The names that precede the texts which a script gives to tools.
#[derive(Clone, Copy, Debug)]
pub struct ScriptWords {
    /// Before a command.
    pub command: &'static str,
    /// Before an item of a to-do list.
    pub step: &'static str,
    /// Before the status of that item.
    pub status: &'static str,
    /// Before the name of a job that the script polls. What a script prints has the same name.
    pub job: &'static str,
    /// The prefix of a result that holds what a script printed.
    pub head: &'static str,
    /// The field that only the result of a command has, in what a script printed.
    pub sign: &'static str,
    /// The field with its exit code.
    pub exit: &'static str,
}

/// Where a result states the exit code of a command: the digits follow the words.
#[derive(Clone, Copy, Debug)]
pub enum ExitCodeAt {
    /// At the beginning of its text.
    First(&'static str),
    /// At the beginning of one of its first lines.
    Head(&'static str),
    /// At the beginning of its last line.
    Last(&'static str),
    /// At this path in a text that is JSON.
    Json(&'static str),
    /// At this path in what is left over of its record.
    Field(&'static str),
}

/// What a person or a rule said to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It may run.
    Approved,
    /// The user refused it.
    Denied,
    /// A rule or a mode refused it.
    Refused,
    /// A hook blocked it.
    Blocked,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::Denied => "denied",
            Verdict::Refused => "refused",
            Verdict::Blocked => "blocked",
        }
    }
}

/// The fields of a fact that reports on a call. An empty path means that the fact has no such field.
#[derive(Clone, Copy, Debug)]
pub struct ReportPaths {
    /// The fact.
    pub fact: &'static str,
    /// The id of the call.
    pub call: &'static str,
    /// The command, as a text or as a list of words.
    pub command: &'static str,
    /// The exit code.
    pub exit: &'static str,
    /// Whether the call succeeded.
    pub success: &'static str,
    /// An object whose keys are the changed files; each value has a `type`.
    pub changes: &'static str,
    /// The side conversation that the call started.
    pub thread: &'static str,
    /// The kind of its agent.
    pub kind: &'static str,
    /// The task of its agent.
    pub task: &'static str,
}

impl ReportPaths {
    /// A report without any field.
    pub const NONE: ReportPaths = ReportPaths {
        fact: "",
        call: "",
        command: "",
        exit: "",
        success: "",
        changes: "",
        thread: "",
        kind: "",
        task: "",
    };
}

/// The fields of a fact by which a call was judged.
#[derive(Clone, Copy, Debug)]
pub struct JudgementPaths {
    /// The fact.
    pub fact: &'static str,
    /// The field with the judgement.
    pub field: &'static str,
    /// Its values, and what each means.
    pub words: &'static [(&'static str, Verdict)],
    /// The field with the reason.
    pub reason: &'static str,
}

/// The fields of a fact that holds a whole record of a side conversation.
#[derive(Clone, Copy, Debug)]
pub struct NestedPaths {
    /// The fact.
    pub fact: &'static str,
    /// The record.
    pub record: &'static str,
    /// The side conversation.
    pub thread: &'static str,
    /// The call that started it.
    pub call: &'static str,
}

/// The words of a user message that only reports on a job.
#[derive(Clone, Copy, Debug)]
pub struct NoticeWords {
    /// Its prefix.
    pub begins: &'static str,
    /// The words around the name of the job.
    pub job: (&'static str, &'static str),
    /// The words around the state of the job.
    pub state: (&'static str, &'static str),
    /// The words before its exit code.
    pub exit: &'static str,
}
