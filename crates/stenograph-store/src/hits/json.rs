//! A hit for programs, and the commands that lead to it.

use stenograph::text::quote;

use super::ShownHit;
use crate::sessions::{iso, path_json, project_json, resume_line_here, strings_json};

impl ShownHit {
    /// The number of the event; `None` if the hit is about the session as a whole.
    pub fn number(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.event)
    }

    /// The command that shows the hit.
    pub fn show_line(&self) -> Option<String> {
        let open = self.open.as_ref()?;
        let version = self.hit.version.map(|version| format!(" --version {version}")).unwrap_or_default();
        Some(format!("steno show {}{version} --event {}", open.word(), open.event))
    }

    /// The command that resumes the session in its agent, if the agent has one.
    pub fn resume_line(&self) -> Option<String> {
        let (session, source) = (self.session.as_ref()?, self.source.as_ref()?);
        resume_line_here(session, source)
    }

    /// The hit as `steno find --json` prints it.
    pub fn json(&self) -> String {
        let text = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quote);
        let session = self.session.as_ref();
        let time = iso(self.hit.time);
        let (read, absent) = match &self.read {
            Ok(seen) => (Some(seen), None),
            Err(reason) => (None, Some(*reason)),
        };
        let snippet = read.map_or_else(
            || "null".to_owned(),
            |seen| {
                let marks: Vec<String> =
                    seen.snippet.marks.iter().map(|mark| format!("[{},{}]", mark.start, mark.end)).collect();
                format!("{{\"text\":{},\"marks\":[{}]}}", quote(&seen.snippet.text), marks.join(","))
            },
        );
        format!(
            "{{\"session\":{},\"agent\":{},\"project\":{},\"title\":{},\"asked\":{},\"pinned\":{},\"tags\":{},\"event\":{},\"line\":{},\"offset\":{},\"length\":{},\"part\":{},\
         \"path\":{},\"version\":{},\"time\":{},\"kind\":{},\"role\":{},\"tool\":{},\"error\":{},\"score\":{:.3},\"copies\":{},\"snippet\":{snippet},\
         \"absent\":{},\"show\":{},\"resume\":{}}}",
            text(session.map(|session| session.name.as_str())),
            text(session.map(|session| session.agent.as_str())),
            project_json(session.and_then(|session| session.project.as_ref())),
            text(session.and_then(|session| session.title.as_deref())),
            text(session.and_then(|session| session.query.as_deref())),
            session.is_some_and(|session| session.marks.pinned),
            strings_json(session.map_or(&[], |session| &session.marks.tags)),
            self.number().map_or_else(|| "null".to_owned(), |number| number.to_string()),
            self.hit.at.line,
            self.hit.at.offset,
            self.hit.at.length,
            self.hit.part,
            self.source.as_ref().map_or_else(|| "null".to_owned(), |source| path_json(&source.path)),
            self.hit.version.map_or_else(|| "null".to_owned(), |version| version.to_string()),
            text(time.as_deref()),
            text(read.map(|seen| seen.kind)),
            text(read.and_then(|seen| seen.role)),
            text(read.and_then(|seen| seen.tool.as_deref())),
            read.is_some_and(|seen| seen.is_error),
            self.hit.score,
            self.hit.copies,
            text(absent),
            text(self.show_line().as_deref()),
            text(self.resume_line().as_deref()),
        )
    }
}
