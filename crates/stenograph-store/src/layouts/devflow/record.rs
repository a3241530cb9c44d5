//! Begins a run: a free id, a folder of its own, and `metadata.json` that states it is running. The turns are in the journal
//! until the run ends; `finish.rs` converts them then.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::formats::devflow::Devflow;
use stenograph::json::{self, Object};
use stenograph::time::{Time, TimeUnit};

use super::finish::RunDocuments;
use super::metadata::RunMetadata;
use super::run::DevflowRun;
use super::{ARCHIVE_ENDING, BASE, Base, JOURNAL, METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED, index};
use crate::discover::path_hints;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, write_all};
use crate::journal::{Recording, RecordingHeader, Settings, recordings};
use crate::layouts::{self, Environment, Layout, LayoutInfo, LockedJournal, OpenedRecording, RunSummary, Target};
use crate::lock::{Lock, safe_component};
use crate::source::{Passes, Source};
use crate::source_file::is_same;
use crate::tail::Warning;

/// The layout.
pub struct DevflowLayout;

const NAME: &str = "devflow";

/// The settings of a run, by their names on the command line.
pub const RUN: &str = "run";
pub const FLOW: &str = "flow";
pub const NODE: &str = "node";
pub const INPUT: &str = "input";
pub const COST: &str = "cost";
pub const DURATION: &str = "duration";
const IDENTIFIER: &str = "identifier";
const TICKET: &str = "ticket";
/// The start time, which the recorder adds for a recovery.
pub const STARTED: &str = "startedAt";

/// The flow of a run without settings.
const FLOW_DEFAULT: &str = "manual";

impl Layout for DevflowLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: NAME,
            agent: "devflow",
            title: "devflow's runs: runs/ID/ with metadata.json and a transcript, and index.json",
            path: "the folder that contains runs/ (.devflow by default)",
            keys: &[
                (RUN, "the id of the run (by default generated from date, flow and identifier)"),
                (FLOW, "the flow of the run (manual by default)"),
                (NODE, "the node of the flow"),
                (INPUT, "the input of the flow: a JSON object, or @FILE"),
                (TICKET, "the ticket, for the id"),
                (IDENTIFIER, "the last part of the id, if it is not the ticket"),
                (COST, "the cost in US dollars"),
                (DURATION, "the duration in milliseconds"),
            ],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let base = Base::at(target.path.as_deref().unwrap_or(Path::new(BASE)));
        let mut settings = target.settings.clone();
        check(&settings)?;
        let started = beginning(&base, environment)?;
        settings.entry(FLOW.to_owned()).or_insert_with(|| FLOW_DEFAULT.to_owned());
        settings.insert(STARTED.to_owned(), started.to_iso().unwrap_or_default().into_owned());
        let id = claim(&base, &mut settings, &started, environment)?;
        let journal_lock = LockedJournal::of_journal(&base.run(&id).join(JOURNAL), environment)?;
        // The index should include the run from the start; a failure is repaired at the end.
        let _ = index::update(environment.files.as_ref(), &base, &started);
        let header = RecordingHeader { layout: NAME.to_owned(), settings, ..RecordingHeader::default() };
        Ok(OpenedRecording::new(journal_lock, header, Box::new(RunDocuments::begun(environment, base.run(&id)))))
    }

    fn resume(&self, _recorded: &Recording, environment: &Environment) -> Result<Box<dyn layouts::Documents>, Error> {
        Ok(Box::new(RunDocuments::new(environment)))
    }

    fn run_summary(&self, path: &Path) -> Option<RunSummary> {
        let is_part = path.file_name().is_some_and(|name| {
            [METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED, JOURNAL].iter().any(|part| name == Path::new(part))
        });
        let folder = if path.is_dir() { Some(path) } else { is_part.then(|| folder_of(path)) };
        let run = match folder.filter(|folder| is_run(folder)) {
            // `.` has no file name.
            Some(folder) => {
                let whole = std::fs::canonicalize(folder).ok()?;
                DevflowRun::at(folder, &whole.file_name()?.to_string_lossy())
            }
            None => DevflowRun::of_transcript(path)?,
        };
        Some(run.summary())
    }

    fn folders(&self, journal: &Path, _named: Option<&Path>, _environment: &Environment) -> Vec<PathBuf> {
        // The index of all runs is beside the folder of the runs.
        let run = folder_of(journal);
        let base = run.parent().filter(|runs| runs.ends_with(super::RUNS)).and_then(Path::parent);
        vec![base.unwrap_or(run).to_owned()]
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&Devflow)
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        if let Some(found) = reads_run(folder) {
            return Some(vec![found]);
        }
        let base = Base::at(folder);
        if !base.runs().is_dir() {
            return None;
        }
        // The oldest first, as they happened.
        let runs = index::read_all(files, &base).ok()?;
        let found: Vec<PathBuf> = runs.iter().rev().filter_map(|run| reads_run(&base.run(&run.id))).collect();
        (!found.is_empty()).then_some(found)
    }

    fn is_read_from_journal(&self, file: &Path) -> bool {
        file.ends_with(TRANSCRIPT) || file.ends_with(TRANSCRIPT_COMPRESSED)
    }

    fn replaced_files(&self, folder: &Path) -> Vec<Warning> {
        let runs = std::fs::read_dir(Base::at(folder).runs()).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = runs.map(|run| run.path()).collect();
        folders.sort();
        folders.push(folder.to_owned());
        // A run with a journal is read from that.
        let folders = folders.iter().filter(|folder| is_run(folder) && existing(folder, JOURNAL).is_none());
        let text = format!("is not a complete transcript; reading {TRANSCRIPT} next to it instead");
        folders.filter_map(|folder| damaged_transcript(folder)).map(|path| Warning::new(&path, text.clone())).collect()
    }
}

/// Whether a folder is that of a run.
fn is_run(folder: &Path) -> bool {
    [METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED].iter().any(|name| folder.join(name).is_file())
}

/// The file that holds all of a run: its journal while there is one, otherwise its transcript, the compressed one first as
/// devflow does.
fn reads_run(folder: &Path) -> Option<PathBuf> {
    if !is_run(folder) {
        return None;
    }
    existing(folder, JOURNAL).or_else(|| match damaged_transcript(folder) {
        Some(_) => existing(folder, TRANSCRIPT),
        None => existing(folder, TRANSCRIPT_COMPRESSED).or_else(|| existing(folder, TRANSCRIPT)),
    })
}

/// The compressed transcript of a run, if it is unreadable and there is another one.
fn damaged_transcript(folder: &Path) -> Option<PathBuf> {
    existing(folder, TRANSCRIPT)?;
    existing(folder, TRANSCRIPT_COMPRESSED).filter(|compressed| !is_whole_transcript(compressed))
}

fn existing(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|path| path.is_file())
}

/// Whether a file is a transcript that can be read to its end.
fn is_whole_transcript(path: &Path) -> bool {
    let Ok(mut source) = Source::open(path, Passes::Once) else { return false };
    let is_transcript = source.recognize(&path_hints(path)).is_some_and(|found| is_same(found.format, &Devflow));
    is_transcript && source.pass().is_ok_and(|mut pass| io::copy(&mut pass, &mut io::sink()).is_ok())
}

/// The start time of a run: now, but after the newest run. A clock that is set back does not change the order of runs, unless
/// by so much that it was probably wrong before.
fn beginning(base: &Base, environment: &Environment) -> Result<Time<'static>, Error> {
    const AHEAD_MAX_MS: i64 = 24 * 60 * 60 * 1000;
    let now = (environment.clock)();
    let runs = index::look(environment.files.as_ref(), base)?;
    let millis = |time: &Time<'_>| Some(time.instant()?.as_millisecond());
    let newest = runs.iter().find_map(|run| run.started.as_ref().and_then(millis));
    Ok(match (newest, millis(&now)) {
        (Some(newest), Some(millis)) if newest >= millis && newest - millis <= AHEAD_MAX_MS => {
            with_offset_of(&now, newest + 1)
        }
        _ => now,
    })
}

/// A time with the UTC offset of another one.
fn with_offset_of(there: &Time<'_>, millis: i64) -> Time<'static> {
    let time = |millis: i64| Time { text: millis.to_string().into(), unit: TimeUnit::Millis };
    let offset = || {
        let text = there.text.get(there.text.len().checked_sub(6)?..)?;
        let (hours, minutes) = text.get(1..)?.split_once(':')?;
        let size = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
        let sign = if text.starts_with('-') { -1 } else { 1 };
        Some((text, sign * size * 60_000)).filter(|_| text.starts_with(['+', '-']))
    };
    let local = offset().filter(|_| there.unit == TimeUnit::Iso).and_then(|(suffix, offset)| {
        let clock = time(millis + offset).wall("%Y-%m-%dT%H:%M:%S.%3f")?;
        Time::iso(format!("{clock}{suffix}").into())
    });
    local.unwrap_or_else(|| time(millis))
}

/// Validates the settings before anything is recorded.
fn check(settings: &Settings) -> Result<(), Error> {
    let bad = |key: &str| Error::about(Path::new(key), Problem::BadSetting);
    for (key, value) in settings {
        let good = match key.as_str() {
            INPUT => Object::parse(value).is_some(),
            COST => value.parse::<f64>().is_ok_and(|cost| cost.is_finite() && cost >= 0.0) && json::is_valid(value),
            DURATION => json::number(value).is_some(),
            FLOW => !value.trim().is_empty(),
            _ => true,
        };
        if !good {
            return Err(bad(key));
        }
    }
    Ok(())
}

/// Creates the folder of a new run and returns its id. A given id must be free; a generated one gets a number if it is taken.
fn claim(base: &Base, settings: &mut Settings, started: &Time<'_>, environment: &Environment) -> Result<String, Error> {
    if let Some(id) = settings.get(RUN).cloned() {
        safe_component(&id)?;
        return match claim_id(base, &id, settings, environment)? {
            Claim::New => Ok(id),
            Claim::Taken => Err(why_taken(&base.run(&id), environment)),
        };
    }
    let made = generated_id(settings, started);
    for number in 1_u32.. {
        let id = if number == 1 { made.clone() } else { format!("{made}-{number}") };
        settings.insert(RUN.to_owned(), id.clone());
        match claim_id(base, &id, settings, environment)? {
            Claim::New => return Ok(id),
            Claim::Taken => {}
        }
    }
    Err(Error::about(&base.run(&made), Problem::Exists))
}

/// Why a run cannot be recorded again: it is being recorded, it was cut off, or it is over.
fn why_taken(run: &Path, environment: &Environment) -> Error {
    let journal = run.join(JOURNAL);
    let going_on = journal.is_file().then(|| Lock::on(&journal)).and_then(Result::err);
    if let Some(Problem::Locked { holder }) = going_on.map(|error| error.problem) {
        return Error::about(run, Problem::Locked { holder });
    }
    let last = recordings(&environment.files, &journal).ok().and_then(|mut found| found.pop());
    let was_cut_off = last.is_some_and(|recorded| !recorded.is_completed);
    Error::about(run, if was_cut_off { Problem::CutOff } else { Problem::Exists })
}

/// Whether the id was free.
enum Claim {
    New,
    Taken,
}

/// Two processes may both see that an id is free; only one of them can create the file.
fn claim_id(base: &Base, id: &str, settings: &Settings, environment: &Environment) -> Result<Claim, Error> {
    let (files, folder) = (environment.files.as_ref(), base.run(id));
    let unwritable = |error| Error::at(&folder, Problem::Unwritable, error);
    if std::fs::symlink_metadata(&folder).is_ok() || is_archived(files, base, id) {
        return Ok(Claim::Taken);
    }
    create_folder_durably(files, &folder).map_err(unwritable)?;
    let path = folder.join(METADATA);
    let mut file = match files.create_new(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Claim::Taken),
        made => made.map_err(unwritable)?,
    };
    let text = RunMetadata::running(id, settings).document();
    write_all(file.as_mut(), text.as_bytes()).and_then(|()| file.sync()).map_err(unwritable)?;
    files.sync_folder(folder_of(&path)).map_err(unwritable)?;
    Ok(Claim::New)
}

fn is_archived(files: &dyn Files, base: &Base, id: &str) -> bool {
    let months = files.list(&base.archive()).unwrap_or_default();
    months.iter().any(|month| month.join(format!("{id}{ARCHIVE_ENDING}")).is_file())
}

/// `{date}-{flow}-{identifier}` with the local date.
fn generated_id(settings: &Settings, started: &Time<'_>) -> String {
    let date = started.wall("%Y-%m-%d").unwrap_or_else(|| "1970-01-01".to_owned());
    let flow = id_part(settings.get(FLOW).map_or(FLOW_DEFAULT, String::as_str));
    let ticket = settings.get(TICKET).cloned().or_else(|| {
        let input = Object::parse(settings.get(INPUT)?)?;
        input.peek_str("ticketId").map(Cow::into_owned)
    });
    // TK-421 becomes TK421 in an id, whose parts are separated by hyphens.
    let ticket = ticket.map(|ticket| ticket.chars().filter(|char| char.is_alphanumeric()).collect::<String>());
    let identifier = settings.get(IDENTIFIER).map(|given| id_part(given)).or(ticket);
    let identifier = identifier.filter(|identifier| !identifier.is_empty()).unwrap_or_else(|| {
        let random = uuid::Uuid::new_v4().simple().to_string();
        random.get(..8).unwrap_or_default().to_owned()
    });
    format!("{date}-{flow}-{identifier}")
}

const PART_LENGTH_MAX: usize = 40;

/// A word as part of an id: invalid characters become hyphens.
fn id_part(word: &str) -> String {
    let harmless = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
    let name: String = word.chars().map(|char| if harmless(char) { char } else { '-' }).take(PART_LENGTH_MAX).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_id_is_made_of_the_local_date_the_flow_and_the_ticket() {
        let started = Time::iso("2025-01-15T23:30:00-07:00".into()).unwrap();
        let made = |pairs: &[(&str, &str)]| generated_id(&settings(pairs), &started);
        assert_eq!(made(&[("flow", "ticket-to-pr"), ("ticket", "TK-421")]), "2025-01-15-ticket-to-pr-TK421");
        assert_eq!(made(&[("flow", "review"), ("input", r#"{"ticketId":"PR 7"}"#)]), "2025-01-15-review-PR7");
        assert_eq!(made(&[("flow", "a/b ../c"), ("identifier", "00/1")]), "2025-01-15-a-b-..-c-00-1");
        let random = made(&[]);
        let number = random.strip_prefix("2025-01-15-manual-").unwrap();
        assert!(number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit()), "{random}");
        assert!(safe_component(&random).is_ok());
    }

    #[test]
    fn a_time_gets_the_utc_offset_of_another_one() {
        let millis = Time::iso("2025-01-15T23:30:00.007Z".into()).unwrap().instant().unwrap().as_millisecond();
        let at = |text: &'static str| {
            with_offset_of(&Time::iso(text.into()).unwrap(), millis).to_iso().unwrap().into_owned()
        };
        assert_eq!(at("2025-01-15T10:00:00-07:00"), "2025-01-15T16:30:00.007-07:00");
        assert_eq!(at("2025-01-15T10:00:00.5+05:30"), "2025-01-16T05:00:00.007+05:30");
        assert_eq!(at("2025-01-15T10:00:00Z"), "2025-01-15T23:30:00.007Z");
    }

    #[test]
    fn settings_must_be_valid() {
        for (key, bad) in
            [("input", "[1]"), ("input", "{"), ("cost", "much"), ("cost", "-1"), ("cost", "NaN"), ("duration", "1s")]
        {
            let refused = check(&settings(&[(key, bad)])).unwrap_err();
            assert_eq!(refused.problem, Problem::BadSetting, "{key}={bad}");
        }
        check(&settings(&[("input", "{}"), ("cost", "0.12"), ("duration", "1500"), ("flow", "f")])).unwrap();
    }
}
