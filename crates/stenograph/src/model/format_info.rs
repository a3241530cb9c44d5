//! The static description of a format: its names, its locations, and tables of words and paths. Events refer to it, so that
//! every feature can look up the words of the format that a record comes from.

use super::{CallWords, DatabaseTables, Kind, RowFolder, SessionWords, UsageWords};
use crate::frame::Framing;

/// The static description of a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// The agent whose sessions its sources contain. Several formats of one agent contain the same sessions.
    pub agent: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// How its sources are split into records.
    pub framing: Framing,
    /// The usual extension of its files, without the dot.
    pub extension: &'static str,
    /// Patterns of the paths of its sources. A leading `~` is the home folder; `{A|B}` is the value of the environment variable
    /// `A` (one folder, or several separated by commas) or else the path `B`; `{data}` is the system's folder for program data;
    /// any other path is relative to a project folder. Within a name `*` matches anything, `?` one character, and `<session>`,
    /// `<thread>` and `<project>` match anything and capture the session, the sub-agent or the project; none of them matches a
    /// leading dot. A pattern also matches compressed files, which have `.gz` or `.zst` after the name. The first matching
    /// pattern counts.
    pub homes: &'static [&'static str],
    /// Files beside its sources that state the working folder of a session, if no record does.
    pub folder_files: &'static [FolderFile],
    /// The tables of the database in which the agent keeps its sessions. The homes are then those of databases.
    pub database: Option<DatabaseTables>,
    /// The folder of files in which the agent kept the rows of that database before. Some homes are then those of its sessions.
    pub folder: Option<RowFolder>,
    /// The members of zip archives that are its sources.
    pub archive: Option<ArchiveMembers>,
    /// The items of JSON documents that are its sources.
    pub document: Option<DocumentMembers>,
    /// The command that resumes a session in the agent, if there is one, in the syntax of [`crate::resume`]: `{session}` is the
    /// id of the session, `{file}` the source.
    pub resume: Option<&'static str>,
    /// Where another program puts a session so that the agent resumes it; `None` if that is unknown.
    pub placement: Option<Placement>,
    /// How the agent itself takes over a session from a file; `None` if it has no command for that.
    pub import: Option<Import>,
    /// After how many days the agent deletes a transcript that nobody writes to, unless the user sets another time.
    pub retention_days: Option<u16>,
    /// Where the format is specified.
    pub spec: &'static str,
    /// The properties of its records.
    pub traits: Traits,
    /// Its writer only writes back records that it has read: no program could check a session that was converted into it.
    pub own_only: bool,
    /// Whether its sources are never edited: a record holds a whole conversation, or repeats what others say.
    pub is_never_edited: bool,
    /// Its sources have a place for the conversations of sub-agents beside that of the session, and its writer writes them there.
    pub holds_subagents: bool,
    /// Its sources record a conversation with fewer details than another format of the same agent: no times, no usage.
    pub abridged: bool,
    /// Paths of fields that only spell the structure of a record: a writer creates them itself, so their absence is not a loss.
    pub spelling: &'static [&'static str],
    /// The requirements of the agent's own reader for a record, in the syntax of `record_schema.rs`.
    pub record_schema: &'static [&'static str],
    /// Paths of extra fields that repeat the content of their record in another shape. An edit of the record removes them.
    pub restated: &'static [&'static str],
    /// Extra fields of headers that count the events of a kind in the whole source. An edit updates them.
    pub counts: &'static [(&'static str, Kind)],
    /// Paths of extra fields of headers that state the usage of the whole session. An edit keeps and reports them, because the
    /// session used no less.
    pub totals: &'static [&'static str],
    /// The beginning and end of texts that the agent adds to user messages or tool results.
    pub injected: &'static [(&'static str, &'static str)],
    /// What the agent puts before and after the words that a person typed, in the same message. The words begin and end there.
    pub typed: &'static [(&'static str, &'static str)],
    /// How to tell what a person typed from what the agent writes in the role of the user.
    pub user: UserWords,
    /// Prefixes of header lines of results that change on every run.
    pub changing_lines: &'static [&'static str],
    /// Paths of extra fields that state the effects of a call on files in a structured form.
    pub effects: &'static [&'static str],
    /// The path of the field with the call id, in a record with effects that is not a result.
    pub effects_call: Option<&'static str>,
    /// The words by which its agent marks the outcome of a call.
    pub calls: CallWords,
    /// Where its records state the usage of model calls, beyond the usage of their events.
    pub usage: UsageWords,
    /// Where its records state properties of a session.
    pub session: SessionWords,
}

/// Where an agent looks for a session that another program wrote, and where the records of the session name it and its folder.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The path of a new session, in the syntax of [`FormatInfo::homes`], without wildcards. `<session>` is its id, `<id8>` the
    /// first eight characters of it, and `<project>` the name of its working folder. `<year>`, `<month>`, `<day>` and `<time>`
    /// (`2026-03-02T09-14-05`) are the local time at which it is placed; `<utc>` (`2026-03-02T07-14-05-123Z`) and `<minute>`
    /// (`2026-03-02T07-14`) are the time in UTC.
    pub path: &'static str,
    /// How the agent names working folders.
    pub project: ProjectName,
    /// The kind of id that the agent gives its sessions.
    pub id: SessionIdKind,
    /// The fields that name the working folder: `TYPE: PATH` for records of this type, or only the path. A field may be a list.
    pub folders: &'static [&'static str],
    /// The fields that name the session, in the same syntax.
    pub sessions: &'static [&'static str],
    /// The fields in which records state the session that they were copied from, in the same syntax.
    pub forks: &'static [&'static str],
}

/// The commands by which an agent takes over a session from a file, and removes it again, in the syntax of [`crate::resume`].
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// The name of the format of that file.
    pub format: &'static str,
    /// Takes over the session in `{file}`. It works in the folder of the session.
    pub command: &'static str,
    /// Removes `{session}`.
    pub remove: &'static str,
    /// The kind of id that the agent gives its sessions.
    pub id: SessionIdKind,
    /// Makes the file from the rows of a conversation.
    pub of_rows: DocumentOfRows,
}

/// Makes the file that an agent imports from the rows of a conversation. Returns how many of them have no place in it.
pub type DocumentOfRows = fn(&mut dyn std::io::BufRead, &mut dyn std::io::Write) -> std::io::Result<u64>;

/// How an agent names a working folder where it keeps its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectName {
    /// Not at all.
    Nowhere,
    /// By its path, with a hyphen in place of everything that is not an ASCII letter or digit.
    Hyphens,
    /// By its path without the first separator, with a hyphen in place of every one of these characters.
    Separators(&'static [char]),
    /// By a name of the agent's own, which only the agent can give. A file in each of these folders states the working folder: the
    /// path from the folders' parent to it.
    Marked(&'static str),
}

/// The members of a zip archive that are sources.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveMembers {
    /// Members of which every such archive has one.
    pub marks: &'static [&'static str],
    /// The beginning of the names of members that are sources.
    pub prefix: &'static str,
    /// The end of their names. What is between both names the conversation.
    pub suffix: &'static str,
}

/// The items of a JSON document that are sources.
#[derive(Clone, Copy, Debug)]
pub struct DocumentMembers {
    /// Keys of which every such document has all, near its beginning.
    pub marks: &'static [&'static str],
    /// The key of the list of the items.
    pub list: &'static str,
    /// The keys of an item whose words name the conversation.
    pub name: [&'static str; 2],
    /// What is between both words.
    pub between: &'static str,
}

/// A file beside a source that states the working folder of its session.
#[derive(Clone, Copy, Debug)]
pub struct FolderFile {
    /// The path from the folder of the source: `..` goes up, and `<session>` is the session as [`FormatInfo::homes`] capture it.
    pub path: &'static str,
    /// Where the file has the folder.
    pub folder: FolderAt,
}

/// Where a file beside a source has the working folder of its session.
#[derive(Clone, Copy, Debug)]
pub enum FolderAt {
    /// It is the whole text.
    Text,
    /// At this key of a JSON object.
    Key(&'static str),
    /// In an element of a list of JSON objects: the one whose folder has the MD5 digest that names the project, or that names
    /// the session.
    List {
        /// The key of the list.
        list: &'static str,
        /// The key of the folder in an element.
        folder: &'static str,
        /// The key of a session in an element.
        session: &'static str,
    },
}

/// The kind of id that an agent gives its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionIdKind {
    /// A random UUID: version 4.
    RandomUuid,
    /// A UUID that begins with the time: version 7.
    TimedUuid,
    /// This prefix, a time that counts down in twelve hexadecimal digits, and fourteen letters and digits.
    Descending(&'static str),
}

/// The marks of user messages that an agent writes, and of those that a person types in other words.
#[derive(Clone, Copy, Debug)]
pub struct UserWords {
    /// Paths of extra fields that are `true` if the agent wrote the message.
    pub flags: &'static [&'static str],
    /// Paths of extra fields with the author of the message, each with the words for a person. Another word means the agent.
    pub authors: &'static [(&'static str, &'static [&'static str])],
    /// The beginning and end of whole messages of the agent.
    pub messages: &'static [(&'static str, &'static str)],
    /// Beginnings of elements of markup that hold a command with which a person asks the model something.
    pub commands: &'static [&'static str],
}

impl UserWords {
    /// No marks.
    pub const NONE: UserWords = UserWords { flags: &[], authors: &[], messages: &[], commands: &[] };
}

impl FormatInfo {
    /// An empty description: formats override only the fields that they need.
    pub const BLANK: FormatInfo = FormatInfo {
        name: "",
        agent: "",
        title: "",
        framing: Framing::Lines,
        extension: "",
        homes: &[],
        folder_files: &[],
        database: None,
        folder: None,
        archive: None,
        document: None,
        resume: None,
        placement: None,
        import: None,
        retention_days: None,
        spec: "",
        traits: Traits { pieces: false, carries: false, lossy: false, log: false },
        own_only: false,
        is_never_edited: false,
        holds_subagents: false,
        abridged: false,
        spelling: &[],
        record_schema: &[],
        restated: &[],
        counts: &[],
        totals: &[],
        injected: &[],
        typed: &[],
        user: UserWords::NONE,
        changing_lines: &[],
        effects: &[],
        effects_call: None,
        calls: CallWords::NONE,
        usage: UsageWords::NONE,
        session: SessionWords::NONE,
    };
}

/// The properties of the records of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traits {
    /// A reader may begin at any record: no record depends on an earlier one.
    pub pieces: bool,
    /// The agent's own reader ignores unknown keys, so that a record can carry its source.
    pub carries: bool,
    /// It is text for people, which cannot express everything: writing a source back may lose data, and a golden file lists the
    /// losses.
    pub lossy: bool,
    /// Its sources are logs beside conversations, of one or many sessions: a file of this format is not a session by itself.
    pub log: bool,
}
