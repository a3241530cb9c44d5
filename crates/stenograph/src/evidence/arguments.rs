//! The kind and arguments of a tool call, in one shape for all agents. It names no agent and recognizes tools by the words in
//! their names and by the keys of their inputs.

use super::{CallInput, PlanChange, Task, Touch, TouchHow, fold_key, is_named, script_words, text_under, touches};
use crate::json::Object;
use crate::model::{Body, Event, Input};

/// What a tool call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// It runs a command.
    Command,
    /// It reads files or lists folders.
    Read,
    /// It creates, changes or deletes files.
    Edit,
    /// It searches files or the web.
    Search,
    /// It fetches a web page.
    Fetch,
    /// It changes the plan or the to-do list.
    Plan,
    /// It asks the user a question.
    Question,
    /// It gives another agent a task.
    SubAgent,
    /// It does something else.
    Other,
}

impl CallKind {
    /// Every kind.
    pub const ALL: [CallKind; 9] = [
        CallKind::Command,
        CallKind::Read,
        CallKind::Edit,
        CallKind::Search,
        CallKind::Fetch,
        CallKind::Plan,
        CallKind::Question,
        CallKind::SubAgent,
        CallKind::Other,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Command => "command",
            CallKind::Read => "read",
            CallKind::Edit => "edit",
            CallKind::Search => "search",
            CallKind::Fetch => "fetch",
            CallKind::Plan => "plan",
            CallKind::Question => "question",
            CallKind::SubAgent => "sub-agent",
            CallKind::Other => "other",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<CallKind> {
        CallKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The arguments of a tool call. A field is `None` or empty if the call has no such argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallArguments {
    /// The command line that the call runs.
    pub command: Option<String>,
    /// The files that the call names, and what it does to each.
    pub files: Vec<Touch>,
    /// The words or the pattern that the call searches for.
    pub pattern: Option<String>,
    /// The URL that the call fetches.
    pub url: Option<String>,
    /// The question to the user.
    pub question: Option<String>,
    /// The change to the to-do list.
    pub plan: Option<PlanChange>,
    /// The task for another agent.
    pub task: Option<Task>,
}

/// Keys whose value is a search pattern or search words.
pub(crate) const PATTERN_KEYS: [&str; 7] = ["pattern", "query", "regex", "glob", "search", "q", "queries"];

/// Keys whose value is a URL.
pub(crate) const URL_KEYS: [&str; 3] = ["url", "uri", "urls"];

/// Keys whose value is a question to the user.
const QUESTION_KEYS: [&str; 2] = ["question", "questions"];

/// Words in the names of tools that search.
const SEARCHING: [&str; 6] = ["grep", "glob", "search", "find", "rg", "ripgrep"];

/// Words in the names of tools that ask the user.
const ASKING: [&str; 4] = ["ask", "question", "questions", "askuserquestion"];

/// What a call asks of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRequest {
    /// An answer to a question.
    Answer,
    /// Permission to go on.
    Permission,
}

impl UserRequest {
    /// What every call of this tool asks of the user; `None` if it asks nothing.
    pub fn of(tool: &str) -> Option<UserRequest> {
        match () {
            () if fold_key(tool) == "exitplanmode" => Some(UserRequest::Permission),
            () if is_named(tool, &ASKING) || is_named(tool, &["user"]) && is_named(tool, &["input"]) => {
                Some(UserRequest::Answer)
            }
            () => None,
        }
    }
}

impl CallArguments {
    /// The kind and the arguments of a tool call; `None` for every other event.
    pub fn of(event: &Event<'_>) -> Option<(CallKind, CallArguments)> {
        let Body::ToolCall { name, input, .. } = &event.body else { return None };
        let script = script_words(event);
        let files = touches(name, input, event.cwd.as_deref());
        let command = CallInput::of(name, input, script, || !files.is_empty()).command;
        let mut arguments =
            CallArguments { command, files, plan: PlanChange::of(name, input, script), ..CallArguments::default() };
        if let Input::Json(raw) = input
            && let Some(object) = Object::parse(raw)
        {
            let text = |keys: &[&str]| text_under(&object, keys);
            arguments.pattern = text(&PATTERN_KEYS);
            arguments.url = text(&URL_KEYS);
            arguments.question = text(&QUESTION_KEYS);
            arguments.task = Task::of(name, &object);
        }
        Some((arguments.kind(name), arguments))
    }

    /// The kind of a call of this tool with these arguments. The most specific argument decides.
    fn kind(&self, tool: &str) -> CallKind {
        let changes = |touch: &Touch| matches!(touch.how, TouchHow::Written | TouchHow::Edited | TouchHow::Deleted);
        match () {
            () if self.plan.is_some() => CallKind::Plan,
            () if self.task.is_some() => CallKind::SubAgent,
            () if self.command.is_some() => CallKind::Command,
            () if self.files.iter().any(changes) => CallKind::Edit,
            () if UserRequest::of(tool) == Some(UserRequest::Answer) => CallKind::Question,
            () if is_named(tool, &["plan", "todo", "todos"]) => CallKind::Plan,
            () if self.pattern.is_some() || is_named(tool, &SEARCHING) => CallKind::Search,
            () if self.url.is_some() || is_named(tool, &["fetch", "browse"]) => CallKind::Fetch,
            () if !self.files.is_empty() || is_named(tool, &["read", "view", "ls"]) => CallKind::Read,
            () => CallKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_all_agents_have_a_kind() {
        for (tool, input, kind) in [
            ("Bash", r#"{"command":"ls"}"#, CallKind::Command),
            ("shell", r#"{"command":["bash","-lc","ls"]}"#, CallKind::Command),
            ("exec_command", r#"{"cmd":"ls"}"#, CallKind::Command),
            ("Read", r#"{"file_path":"/a"}"#, CallKind::Read),
            ("LS", r#"{"path":"/a"}"#, CallKind::Read),
            ("Write", r#"{"file_path":"/a","content":"x"}"#, CallKind::Edit),
            ("MultiEdit", r#"{"file_path":"/a","edits":[]}"#, CallKind::Edit),
            ("apply_patch", r#"{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}"#, CallKind::Edit),
            ("str_replace_editor", r#"{"command":"view","path":"/a"}"#, CallKind::Read),
            ("str_replace_editor", r#"{"command":"create","path":"/a","file_text":"x"}"#, CallKind::Edit),
            ("Grep", r#"{"pattern":"x","path":"/a"}"#, CallKind::Search),
            ("Glob", r#"{"pattern":"*.rs"}"#, CallKind::Search),
            ("WebSearch", r#"{"query":"x"}"#, CallKind::Search),
            ("web_search", r#"{"type":"search"}"#, CallKind::Search),
            ("WebFetch", r#"{"url":"https://a.example","prompt":"x"}"#, CallKind::Fetch),
            ("TodoWrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#, CallKind::Plan),
            ("update_plan", r#"{"plan":[{"step":"a","status":"pending"}]}"#, CallKind::Plan),
            ("TaskCreate", r#"{"subject":"a"}"#, CallKind::Plan),
            ("ExitPlanMode", r#"{"plan":"do it"}"#, CallKind::Plan),
            ("AskUserQuestion", r#"{"questions":[{"question":"Which?"}]}"#, CallKind::Question),
            ("request_user_input", r#"{"questions":[]}"#, CallKind::Question),
            ("Task", r#"{"subagent_type":"Explore","prompt":"look"}"#, CallKind::SubAgent),
            ("spawn_agent", r#"{"message":"go"}"#, CallKind::SubAgent),
            ("mcp__calendar__next", r#"{}"#, CallKind::Other),
        ] {
            let call = Body::ToolCall { call: None, name: tool.into(), input: Input::Json(input.into()) };
            let (found, _) = CallArguments::of(&Event::new(call)).unwrap();
            assert_eq!(found, kind, "{tool} {input}");
        }
    }

    #[test]
    fn arguments_have_the_same_names_for_all_agents() {
        let of = |tool: &'static str, input: &'static str| {
            let call = Body::ToolCall { call: None, name: tool.into(), input: Input::Json(input.into()) };
            CallArguments::of(&Event { cwd: Some("/w".into()), ..Event::new(call) }).unwrap().1
        };
        assert_eq!(of("shell", r#"{"command":["bash","-lc","ls -a"]}"#).command.as_deref(), Some("ls -a"));
        assert_eq!(of("Read", r#"{"file_path":"a.rs"}"#).files[0].path, "/w/a.rs");
        assert_eq!(of("Grep", r#"{"pattern":"x"}"#).pattern.as_deref(), Some("x"));
        assert_eq!(of("WebFetch", r#"{"url":"https://a.example"}"#).url.as_deref(), Some("https://a.example"));
        assert_eq!(of("Task", r#"{"prompt":"look","subagent_type":"e"}"#).task.unwrap().prompt, "look");
    }
}
