//! What is known of a format beforehand: its names, its places, and tables of words and paths. Events point to it, so that every feature
//! can ask in whose words a record is told.

use super::{CallWords, Kind, SessionWords, UsageWords};
use crate::frame::Framing;

/// What people and programs need to know about a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// The agent whose sessions its sources tell: several formats of one agent tell the same ones.
    pub agent: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// How its sources are cut into records.
    pub framing: Framing,
    /// The usual ending of its files, without the point.
    pub extension: &'static str,
    /// Where its sources are found. `~` at the beginning is the home folder, `{A|B}` what the environment variable `A` says (one
    /// folder, or several with commas between them), else the place `B`, and `{data}` the folder in which programs of the system
    /// keep their data; what begins otherwise is found in the folder of a project. In a name `*` is anything, `?` one character,
    /// and `<session>`, `<thread>` and `<project>` are anything that names the session, the sub-agent or the project; none of them
    /// begins with a point. A file that fits is found compressed, too: with `.gz` or `.zst` after its name. Of two that fit, the
    /// first in this list counts.
    pub homes: &'static [&'static str],
    /// The command with which the agent goes on with a session, where there is one, as [`crate::resume`] spells it: `{session}` is
    /// the session's id, `{file}` the source.
    pub resume: Option<&'static str>,
    /// What it is specified by.
    pub spec: &'static str,
    /// What its records can do.
    pub traits: Traits,
    /// Paths of fields that only spell the structure of a record: a writer makes them anew, so that leaving them out is no loss.
    pub spelling: &'static [&'static str],
    /// What the real system's own reader demands of a record, as [`crate::record_schema`] reads it.
    pub record_schema: &'static [&'static str],
    /// Paths of fields, left over in its records, that say again in another shape what the record says. They must not outlive
    /// an edit of it.
    pub restated: &'static [&'static str],
    /// Fields, left over in its headers, that count the events of a kind in the whole source: they follow an edit.
    pub counts: &'static [(&'static str, Kind)],
    /// Paths of fields, left over in its headers, that tell what the whole session took. An edit leaves them as they are, for the
    /// session took no less, and says so.
    pub totals: &'static [&'static str],
    /// The beginning and the end of texts that the agent adds to the messages of its user, or to the results of tools.
    pub injected: &'static [(&'static str, &'static str)],
    /// Prefixes of lines at the head of a result that change on every run.
    pub changing_lines: &'static [&'static str],
    /// Paths of fields, left over in its records, that state in a shape for programs what a call did to files.
    pub effects: &'static [&'static str],
    /// The path of the field that names the call, in a record with effects that is not a result.
    pub effects_call: Option<&'static str>,
    /// The words by which its agent marks what came of a call.
    pub calls: CallWords,
    /// Where its records state what model calls took, beyond the usage of their events.
    pub usage: UsageWords,
    /// Where its records state what holds for a session.
    pub session: SessionWords,
}

impl FormatInfo {
    /// A format of which nothing is known: the others say only what they have to say.
    pub const BLANK: FormatInfo = FormatInfo {
        name: "",
        agent: "",
        title: "",
        framing: Framing::Lines,
        extension: "",
        homes: &[],
        resume: None,
        spec: "",
        traits: Traits { pieces: false, carries: false, lossy: false, log: false },
        spelling: &[],
        record_schema: &[],
        restated: &[],
        counts: &[],
        totals: &[],
        injected: &[],
        changing_lines: &[],
        effects: &[],
        effects_call: None,
        calls: CallWords::NONE,
        usage: UsageWords::NONE,
        session: SessionWords::NONE,
    };
}

/// What the records of a format can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traits {
    /// Reading may begin at any record: no record depends on an earlier one.
    pub pieces: bool,
    /// Its readers pass over a key they do not know, so that a carried source has room.
    pub carries: bool,
    /// It is text for people, which cannot say everything: writing a source back may lose, and a golden says what.
    pub lossy: bool,
    /// Its sources are logs beside conversations, of one session or of many: a file of this format is no session by itself.
    pub log: bool,
}
