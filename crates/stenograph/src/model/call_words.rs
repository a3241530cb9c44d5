//! The words and fields by which an agent marks the outcome of a call: exit codes, refusals, background jobs. These are tables
//! only; only [`crate::evidence`] reads records with them.

use serde::{Deserialize, Serialize};

use super::{Reader, Wanted};

/// The words and fields by which an agent marks the outcome of a call. A field is a path in the extra fields of a record.
#[derive(Clone, Copy, Debug)]
pub struct CallWords {
    /// The words of scripts that call tools.
    pub script: Option<ScriptWords>,
    /// Tools that run at the model's vendor, so that no record has their results, each with the field of the call that states
    /// its status.
    pub hosted_tools: &'static [(&'static str, &'static str)],
    /// Where a result states the exit code of a command.
    pub exit_codes: &'static [ExitCodeAt],
    /// Prefixes of failed results whose record has no field that states the failure.
    pub failure_prefixes: &'static [&'static str],
    /// Prefixes of results of interrupted calls.
    pub interruption_prefixes: &'static [&'static str],
    /// Prefixes of user messages by which the agent reports that its user interrupted the run.
    pub interruption_messages: &'static [&'static str],
    /// Fields of results that are true if the call was interrupted.
    pub interrupted_fields: &'static [&'static str],
    /// Prefixes of results that a person or a rule gave instead of the tool.
    pub verdict_prefixes: &'static [(&'static str, Verdict)],
    /// Fields of results that exist only if the call was not allowed, each with the word that it contains if the user refused.
    pub denial_fields: &'static [(&'static str, &'static str)],
    /// Words in a result that precede the name of a background job.
    pub job_prefixes: &'static [&'static str],
    /// Fields of results with the name of such a job.
    pub job_fields: &'static [&'static str],
    /// Fields of results with the state of another agent.
    pub agent_state_fields: &'static [&'static str],
    /// The words around the state of another agent in a result that is marked up with tags.
    pub agent_state_tags: Option<(&'static str, &'static str)>,
    /// The key of a JSON result that has the state of another agent, or an object with the states of several by their names.
    pub agent_list_key: Option<&'static str>,
    /// The words for the states of other agents and of jobs.
    pub agent_states: &'static [(&'static str, AgentState)],
    /// Fields of results with the kind of another agent.
    pub agent_kind_fields: &'static [&'static str],
    /// Fields of results that state whether the call created its file, each with the word for yes.
    pub creation_fields: &'static [(&'static str, &'static str)],
    /// Fields of any record with the permission mode.
    pub mode_fields: &'static [&'static str],
    /// Facts whose content is the permission mode.
    pub mode_facts: &'static [&'static str],
    /// Facts that report on a call.
    pub reports: &'static [ReportPaths],
    /// Facts by which a person or a rule approves or refuses a call.
    pub judgements: &'static [JudgementPaths],
    /// Facts that contain a whole record of a side conversation.
    pub nested: Option<NestedPaths>,
    /// Reads records of the format that are inside other records.
    pub nested_reader: Option<fn(Wanted) -> Box<dyn Reader>>,
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
        agent_state_tags: None,
        agent_list_key: None,
        agent_states: &[],
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

    /// The meaning of a word for the state of another agent.
    pub(crate) fn agent_state(&self, word: &str) -> Option<AgentState> {
        self.agent_states.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
    }
}

/// The names that precede the texts which a script passes to tools.
#[derive(Clone, Copy, Debug)]
pub struct ScriptWords {
    /// Before a command.
    pub command: &'static str,
    /// Before an item of a to-do list.
    pub step: &'static str,
    /// Before the status of that item.
    pub status: &'static str,
    /// Before the name of a job that the script polls. The output of a script has the same name.
    pub job: &'static str,
    /// The prefix of a result that contains the output of a script.
    pub head: &'static str,
    /// The field that only the result of a command has, in the output of a script.
    pub marker: &'static str,
    /// The field with the exit code.
    pub exit: &'static str,
}

/// Where a result states the exit code of a command: the digits follow these words.
#[derive(Clone, Copy, Debug)]
pub enum ExitCodeAt {
    /// At the beginning of the text.
    First(&'static str),
    /// At the beginning of one of the first lines.
    Head(&'static str),
    /// At the beginning of the last line.
    Last(&'static str),
    /// At the beginning of one of the last lines.
    Tail(&'static str),
    /// At this path in a text that is JSON.
    Json(&'static str),
    /// At this path in the extra fields of the record.
    Field(&'static str),
}

/// A decision of a person or a rule about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The call may run.
    Approved,
    /// The user refused it.
    Denied,
    /// A rule or a mode refused it.
    Refused,
    /// A hook blocked it.
    Blocked,
}

impl Verdict {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::Denied => "denied",
            Verdict::Refused => "refused",
            Verdict::Blocked => "blocked",
        }
    }
}

/// The state of an agent that another agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AgentState {
    /// No record states it.
    #[default]
    Unknown,
    /// It started, and no record states its end.
    Running,
    /// It ended with success.
    Completed,
    /// It ended without success.
    Failed,
    /// The user or a rule did not allow it.
    Denied,
}

impl AgentState {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            AgentState::Unknown => "unknown",
            AgentState::Running => "running",
            AgentState::Completed => "completed",
            AgentState::Failed => "failed",
            AgentState::Denied => "denied",
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

/// The fields of a fact by which a person or a rule decides about a call.
#[derive(Clone, Copy, Debug)]
pub struct JudgementPaths {
    /// The fact.
    pub fact: &'static str,
    /// The field with the decision.
    pub field: &'static str,
    /// The values of the field, and their meanings.
    pub words: &'static [(&'static str, Verdict)],
    /// The field with the reason.
    pub reason: &'static str,
}

/// The fields of a fact that contains a whole record of a side conversation.
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
    /// The prefix of the message.
    pub begins: &'static str,
    /// The words around the name of the job.
    pub job: (&'static str, &'static str),
    /// The words around the state of the job.
    pub state: (&'static str, &'static str),
    /// The words before the exit code.
    pub exit: &'static str,
}
