//! The command that resumes a session in its agent.

use stenograph::resume::{self, Refused, Shell};

use crate::Error;
use crate::index::catalogue::{Catalogue, Gone, IndexedSession, SourceRow};

/// The usual shell of this system.
const SHELL_HERE: Shell = if cfg!(windows) { Shell::PowerShell } else { Shell::Sh };

/// The template of the agent's command, if it has one.
pub fn resume_template(source: &SourceRow) -> Option<&'static str> {
    source.known_format()?.info().resume
}

/// The command of a template for a session, quoted for a shell.
pub fn resume_line(
    template: &str,
    session: &IndexedSession,
    source: &SourceRow,
    shell: Shell,
) -> Result<String, Refused> {
    let path = source.path.display().to_string();
    let target =
        resume::ResumeTarget { session: Some(&session.name), file: Some(&path), folder: session.cwd.as_deref() };
    resume::line(template, &target, shell)
}

/// The command for a session on this system, if it has one and its main source exists.
pub fn resume_command(session: &IndexedSession, catalogue: &Catalogue) -> Result<Option<String>, Error> {
    let Some(source) = catalogue.source_at(&session.path)?.filter(|source| source.gone == Gone::There) else {
        return Ok(None);
    };
    Ok(resume_line_here(session, &source))
}

/// The command for one source of a session on this system, if its agent has one.
pub(crate) fn resume_line_here(session: &IndexedSession, source: &SourceRow) -> Option<String> {
    resume_line(resume_template(source)?, session, source, SHELL_HERE).ok()
}
