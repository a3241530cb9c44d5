//! What can be done with a session, and the command line that does it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stenograph_store::index::catalogue::IndexedSession;

/// What the user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickAction {
    Show,
    Resume,
    CopyId,
    Convert,
    Export,
    Diff,
    Restore,
}

impl PickAction {
    /// The actions of the menu. [`PickAction::Show`] has the key Enter.
    pub const MENU: [PickAction; 6] = [
        PickAction::Resume,
        PickAction::CopyId,
        PickAction::Convert,
        PickAction::Export,
        PickAction::Diff,
        PickAction::Restore,
    ];

    /// The letter in the menu, and together with Alt outside of it.
    pub fn letter(self) -> Option<char> {
        match self {
            PickAction::Show => None,
            PickAction::Resume => Some('r'),
            PickAction::CopyId => Some('y'),
            PickAction::Convert => Some('c'),
            PickAction::Export => Some('e'),
            PickAction::Diff => Some('d'),
            PickAction::Restore => Some('R'),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            PickAction::Show => "show",
            PickAction::Resume => "resume",
            PickAction::CopyId => "copy",
            PickAction::Convert => "convert",
            PickAction::Export => "export",
            PickAction::Diff => "diff",
            PickAction::Restore => "restore",
        }
    }

    pub fn of_letter(letter: char) -> Option<PickAction> {
        PickAction::MENU.into_iter().find(|action| action.letter() == Some(letter))
    }

    /// The targets that the user chooses from: those that the command accepts. None if it needs no target.
    pub fn targets(self) -> Vec<String> {
        let is_wanted = matches!(self, PickAction::Convert | PickAction::Export);
        let command = is_wanted.then(crate::args::command);
        let verb = command.as_ref().and_then(|command| command.find_subcommand(self.name()));
        let to = verb.and_then(|verb| verb.get_arguments().find(|argument| argument.get_id() == "to"));
        let values = to.map(clap::Arg::get_possible_values).unwrap_or_default();
        values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned()).collect()
    }
}

/// An action with everything it needs.
#[derive(Clone, Debug)]
pub struct PickTask {
    pub action: PickAction,
    /// The sessions to act on: two for a comparison, else one; with `--print` any number.
    pub sessions: Vec<IndexedSession>,
    /// The event to show, if a search found it.
    pub event: Option<PickedEvent>,
    /// The format or kind of document to write.
    pub target: Option<String>,
}

/// An event, as `steno show` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickedEvent {
    pub name: String,
    pub number: u64,
    pub version: Option<u32>,
}

impl PickTask {
    /// The command line for the task; `names` are the names of its sessions. `None` if no command does it.
    pub fn command_line(&self, names: &[OsString], root: Option<&Path>) -> Option<Vec<OsString>> {
        let mut line: Vec<OsString> = vec!["steno".into()];
        let mut names = names.to_vec();
        match self.action {
            PickAction::CopyId => return None,
            PickAction::Show => {
                line.push("show".into());
                if let Some(event) = &self.event {
                    line.extend(["--event".into(), event.number.to_string().into()]);
                    line.extend(["--around", "2"].map(OsString::from));
                    line.extend(
                        event.version.iter().flat_map(|version| ["--version".into(), version.to_string().into()]),
                    );
                    names = vec![OsString::from(&event.name)];
                }
            }
            PickAction::Resume => line.push("resume".into()),
            PickAction::Convert | PickAction::Export => {
                line.extend([self.action.name(), "--to", self.target.as_deref()?, "-o"].map(OsString::from));
                line.push(self.output_name()?.into());
            }
            PickAction::Diff => line.push("diff".into()),
            PickAction::Restore => line.extend(["archive".into(), "restore".into()]),
        }
        match (self.action, root) {
            // A conversion reads a file.
            (PickAction::Convert, _) => {
                names = self.sessions.iter().map(|session| session.path.clone().into()).collect();
            }
            (_, Some(root)) => line.extend(["--root".into(), root.into()]),
            (_, None) => {}
        }
        // A name may begin with a dash.
        line.push("--".into());
        line.extend(names);
        Some(line)
    }

    /// The file to write, in the working folder; `None` if the action writes none.
    pub fn output_name(&self) -> Option<PathBuf> {
        let (target, session) = (self.target.as_deref()?, self.sessions.first()?);
        let is_safe = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
        let stem: String = session.name.chars().filter(is_safe).take(NAME_LENGTH).collect();
        let stem = stem.trim_start_matches('-');
        let stem = if stem.is_empty() { "session" } else { stem };
        let format = stenograph::Registry::built_in().named(target).filter(|_| self.action == PickAction::Convert);
        let ending = match (format.map(|format| format.info().extension), target) {
            (Some(extension), _) if extension.starts_with(target) => extension.to_owned(),
            (Some(extension), _) => format!("{target}.{extension}"),
            (None, "markdown") => "md".to_owned(),
            (None, other) => other.to_owned(),
        };
        Some(format!("{stem}.{ending}").into())
    }
}

/// How much of a session's id is in the name of a written file.
const NAME_LENGTH: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    fn task(action: PickAction, target: Option<&str>) -> PickTask {
        let session = IndexedSession::bare("agent", "../0198f2c4-aaaa-bbbb", Path::new("/there/a.jsonl"));
        PickTask { action, sessions: vec![session], event: None, target: target.map(str::to_owned) }
    }

    fn line(task: &PickTask, root: Option<&Path>) -> String {
        let words = task.command_line(&["-name".into()], root).unwrap();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_action_is_a_command_line_that_parses() {
        for action in PickAction::MENU.into_iter().chain([PickAction::Show]) {
            let targets = action.targets();
            assert_eq!(targets.len() > 1, matches!(action, PickAction::Convert | PickAction::Export));
            let targets = if targets.is_empty() { vec![None] } else { targets.into_iter().map(Some).collect() };
            for target in targets {
                let task = task(action, target.as_deref());
                let names: &[OsString] =
                    if action == PickAction::Diff { &["a".into(), "b".into()] } else { &["a".into()] };
                if let Some(words) = task.command_line(names, Some(Path::new("/r"))) {
                    crate::args::command().try_get_matches_from(words).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_written_file_is_named_after_the_session_and_stays_in_this_folder() {
        let export = task(PickAction::Export, Some("markdown"));
        assert_eq!(line(&export, None), "steno export --to markdown -o 0198f2c4-aaaa.md -- -name");
        let native = task(PickAction::Convert, Some("steno"));
        assert_eq!(
            line(&native, Some(Path::new("/r"))),
            "steno convert --to steno -o 0198f2c4-aaaa.steno.jsonl -- /there/a.jsonl"
        );
    }

    #[test]
    fn a_found_event_is_shown_by_its_number() {
        let event = PickedEvent { name: "/a b".to_owned(), number: 7, version: Some(2) };
        let show = PickTask { event: Some(event), ..task(PickAction::Show, None) };
        assert_eq!(line(&show, Some(Path::new("/r"))), "steno show --event 7 --around 2 --version 2 --root /r -- /a b");
    }
}
