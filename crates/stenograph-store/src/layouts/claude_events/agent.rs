//! The recorded agent: its fields in the list of active agents and in the telemetry. This file touches no file.

use stenograph::json::Draft;
use stenograph::time::{Time, TimeUnit};

use super::project::GoodVibesProject;
use crate::error::Error;
use crate::journal::Settings;
use crate::lock::safe_component;

/// An active agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedAgent {
    /// Its id, the key in the list.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its session.
    pub session: String,
    /// Its task.
    pub task: Option<String>,
    /// The branch it works on.
    pub branch: Option<String>,
    /// The commit it started from.
    pub commit: Option<String>,
    /// The absolute path of the project's folder.
    pub project: String,
    /// When it started, in milliseconds since 1970.
    pub started_ms: i64,
}

/// GoodVibes' word for an agent of unknown kind.
const KIND_UNKNOWN: &str = "unknown";

/// The maximum length of a summary, in UTF-16 units as GoodVibes counts.
pub const SUMMARY_UNITS_MAX: usize = 500;

/// The header's key for the start time.
pub const STARTED: &str = "started_ms";
const PROJECT: &str = "project";

impl TrackedAgent {
    /// The agent described by these settings. A missing id is generated from the start time.
    pub fn announced(settings: &Settings, project: &GoodVibesProject, started_ms: i64) -> Result<TrackedAgent, Error> {
        let setting = |key: &str| settings.get(key).cloned();
        let id = |key: &str| match settings.get(key) {
            Some(id) => safe_component(id).map(str::to_owned),
            None => Ok(made_up(started_ms)),
        };
        Ok(TrackedAgent {
            id: id("agent")?,
            kind: setting("type").unwrap_or_else(|| KIND_UNKNOWN.to_owned()),
            session: id("session")?,
            task: setting("task"),
            branch: setting("branch"),
            commit: setting("commit"),
            project: project.name_from_root(),
            started_ms,
        })
    }

    /// The agent as settings for a journal's header.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::from([
            ("agent".to_owned(), self.id.clone()),
            ("type".to_owned(), self.kind.clone()),
            ("session".to_owned(), self.session.clone()),
            (PROJECT.to_owned(), self.project.clone()),
            (STARTED.to_owned(), self.started_ms.to_string()),
        ]);
        for (key, value) in [("task", &self.task), ("branch", &self.branch), ("commit", &self.commit)] {
            settings.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        settings
    }

    /// The agent in a header.
    pub fn of(settings: &Settings) -> Option<TrackedAgent> {
        let setting = |key: &str| settings.get(key).cloned();
        Some(TrackedAgent {
            id: setting("agent")?,
            kind: setting("type")?,
            session: setting("session")?,
            task: setting("task"),
            branch: setting("branch"),
            commit: setting("commit"),
            project: setting(PROJECT)?,
            started_ms: setting(STARTED)?.parse().ok()?,
        })
    }

    /// The start time in GoodVibes' notation.
    pub fn started_at(&self) -> String {
        iso(self.started_ms)
    }

    /// Its entry in the list of active agents.
    pub fn entry(&self, transcript: &str) -> String {
        let mut draft = Draft::new();
        self.identify(&mut draft);
        draft.set_opt("task_description", self.task.as_deref().map(beginning).as_deref());
        draft.set_str("transcript_path", transcript);
        draft.render(None)
    }

    /// Adds the fields that the list and the telemetry share, in their order.
    pub fn identify(&self, draft: &mut Draft<'_>) {
        draft.set_str("agent_id", &self.id);
        draft.set_str("agent_type", &self.kind);
        draft.set_str("session_id", &self.session);
        draft.set_str("project", &self.project);
        draft.set_str("project_name", project_name(&self.project));
        draft.set_opt("git_branch", self.branch.as_deref());
        draft.set_opt("git_commit", self.commit.as_deref());
        draft.set_str("started_at", &self.started_at());
    }

    /// The keyword for its kind: the part after the plug-in's name.
    pub fn keyword(&self) -> Option<&str> {
        let word = self.kind.rsplit(':').next().unwrap_or_default();
        Some(word).filter(|word| !word.is_empty() && *word != KIND_UNKNOWN)
    }
}

/// A random UUID that sorts by time (version 7).
fn made_up(millis: i64) -> String {
    let mut random = [0; 10];
    random.iter_mut().zip(uuid::Uuid::new_v4().as_bytes()).for_each(|(byte, new)| *byte = *new);
    uuid::Builder::from_unix_timestamp_millis(millis.unsigned_abs(), &random).into_uuid().to_string()
}

/// The time in a generated id.
pub fn moment_of(id: &str) -> Option<i64> {
    let id = uuid::Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 7)?;
    i64::try_from(id.as_u128() >> 80).ok()
}

/// A time in JavaScript's notation.
pub fn iso(millis: i64) -> String {
    let time = Time { text: millis.max(0).to_string().into(), unit: TimeUnit::Millis };
    time.to_iso_millis().unwrap_or_default()
}

/// The beginning of a text. JavaScript would split a character; this drops it as a whole.
pub fn beginning(text: &str) -> String {
    let mut units = 0;
    let fits = |char: &char| {
        units += char.len_utf16();
        units <= SUMMARY_UNITS_MAX
    };
    text.chars().take_while(fits).collect()
}

/// The name of a project by GoodVibes' rule: the folder's, or its parent's if it looks like a temporary one.
fn project_name(project: &str) -> &str {
    const HEX_LENGTH_MIN: usize = 8;
    let mut names = project.split(['/', '\\']).filter(|name| !name.is_empty()).rev();
    let last = names.next().unwrap_or_default();
    let hex = last.len() >= HEX_LENGTH_MIN && last.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex || matches!(last, "tmp" | "temp") { names.next().unwrap_or(last) } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;

    fn announced(pairs: &[(&str, &str)]) -> Result<TrackedAgent, Error> {
        let settings = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let now = Time::iso("2026-01-08T11:12:44.501+01:00".into()).unwrap().to_millis().unwrap();
        TrackedAgent::announced(&settings, &GoodVibesProject::at(std::path::Path::new("/home/ana/shop")), now)
    }

    #[test]
    fn an_agent_returns_from_the_header_of_its_journal() {
        for pairs in [&[][..], &[("agent", "a1"), ("task", "Fix it."), ("branch", "main"), ("commit", "9c1e04b")]] {
            let agent = announced(pairs).unwrap();
            assert_eq!(TrackedAgent::of(&agent.settings()), Some(agent));
        }
    }

    #[test]
    fn an_entry_has_the_fields_of_goodvibes_in_their_order() {
        let agent = announced(&[("agent", "a1"), ("session", "s1"), ("type", "goodvibes:tester"), ("branch", "main")]);
        assert_eq!(
            agent.unwrap().entry("/t/a1.jsonl"),
            "{\"agent_id\":\"a1\",\"agent_type\":\"goodvibes:tester\",\"session_id\":\"s1\",\"project\":\"/home/ana/shop\",\
             \"project_name\":\"shop\",\"git_branch\":\"main\",\"started_at\":\"2026-01-08T10:12:44.501Z\",\
             \"transcript_path\":\"/t/a1.jsonl\"}"
        );
    }

    #[test]
    fn ids_are_made_up_where_they_are_missing_and_cannot_lead_out_of_their_folder() {
        let (one, other) = (announced(&[]).unwrap(), announced(&[]).unwrap());
        assert!(one.id != other.id && one.session != other.session && one.kind == "unknown");
        assert_eq!((moment_of(&one.id), moment_of("a1")), (Some(one.started_ms), None));
        for bad in [("agent", "../a"), ("agent", ""), ("session", "a/b")] {
            assert_eq!(announced(&[bad]).unwrap_err().problem, Problem::BadName);
        }
    }

    #[test]
    fn a_project_that_looks_temporary_is_named_after_the_folder_above() {
        for (project, name) in
            [("/home/ana/shop/", "shop"), ("/srv/shop/deadbeef01", "shop"), ("C:\\work\\tmp", "work"), ("/", "")]
        {
            assert_eq!(project_name(project), name);
        }
    }

    #[test]
    fn a_beginning_ends_between_characters() {
        assert_eq!(beginning(&"x".repeat(501)).len(), 500);
        assert_eq!(beginning(&format!("{}😀", "x".repeat(499))), "x".repeat(499));
        assert_eq!(beginning("short"), "short");
    }
}
