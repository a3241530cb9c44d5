//! A hit for programs, and the commands that lead to it.

use stenograph::json::Draft;

use super::ShownHit;
use crate::sessions::{iso, project_json, resume_line_here};

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
        let session = self.session.as_ref();
        let (read, absent) = match &self.read {
            Ok(seen) => (Some(seen), None),
            Err(reason) => (None, Some(*reason)),
        };
        let snippet = read.map(|seen| {
            let marks: Vec<_> = seen.snippet.marks.iter().map(|mark| [mark.start, mark.end]).collect();
            Draft::new().with("text", &seen.snippet.text).with("marks", marks).render(None)
        });
        Draft::new()
            .with("session", session.map(|session| &session.name))
            .with("agent", session.map(|session| &session.agent))
            .with_json("project", project_json(session.and_then(|session| session.project.as_ref())))
            .with("title", session.and_then(|session| session.title.as_deref()))
            .with("asked", session.and_then(|session| session.query.as_deref()))
            .with("pinned", session.is_some_and(|session| session.marks.pinned))
            .with("tags", session.map_or(&[][..], |session| &session.marks.tags))
            .with("event", self.number())
            .with("line", self.hit.at.line)
            .with("offset", self.hit.at.offset)
            .with("length", self.hit.at.length)
            .with("part", self.hit.part)
            .with("path", self.source.as_ref().map(|source| source.path.display().to_string()))
            .with("version", self.hit.version)
            .with("time", iso(self.hit.time))
            .with("kind", read.map(|seen| seen.kind))
            .with("role", read.and_then(|seen| seen.role))
            .with("tool", read.and_then(|seen| seen.tool.as_deref()))
            .with("error", read.is_some_and(|seen| seen.is_error))
            .with_json("score", format!("{:.3}", self.hit.score))
            .with("copies", self.hit.copies)
            .with_json("snippet", snippet.unwrap_or_else(|| "null".to_owned()))
            .with("absent", absent)
            .with("show", self.show_line())
            .with("resume", self.resume_line())
            .render(None)
    }
}
