//! `index.json`: a summary of every run, newest first. It is derived from the runs' folders and may be deleted at any time: an
//! entry is valid only while its files are unchanged.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use stenograph::formats::devflow::spelled;
use stenograph::json::{Object, items};
use stenograph::text::quote;
use stenograph::time::Time;

use super::{Base, DevflowRun};
use crate::error::{Error, Problem};
use crate::files::{Files, replace};
use crate::lock::{self, Lock};
use crate::source::{Passes, Source};

/// The maximum size of an index that is read.
const INDEX_SIZE_MAX: u64 = 256 << 20;

/// All runs, newest first, after updating the index. If it cannot be written, the folders give the same answer.
pub fn list(files: &dyn Files, base: &Base, now: &Time<'_>) -> Result<Vec<DevflowRun>, Error> {
    update(files, base, now).or_else(|_| look(files, base))
}

/// All runs, newest first, using the index as far as it is valid. Writes nothing.
pub fn look(files: &dyn Files, base: &Base) -> Result<Vec<DevflowRun>, Error> {
    collect_runs(files, base, &entries_of(&base.index())).map(|(runs, _)| runs)
}

/// Updates the index and returns all runs, newest first. Waits for a concurrent update and then includes its changes.
pub fn update(files: &dyn Files, base: &Base, now: &Time<'_>) -> Result<Vec<DevflowRun>, Error> {
    let path = base.index();
    let _lock = Lock::wait(&lock::lock_path(&path))?;
    let known = entries_of(&path);
    let (runs, news) = collect_runs(files, base, &known)?;
    if news == IndexIsStale::Some || !path.is_file() {
        let text = document(&runs, now);
        replace(files, &path, text.as_bytes()).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
    }
    Ok(runs)
}

/// All runs from their own folders, newest first: decisions about keeping and removing use nothing else.
pub fn read_all(files: &dyn Files, base: &Base) -> Result<Vec<DevflowRun>, Error> {
    collect_runs(files, base, &HashMap::new()).map(|(runs, _)| runs)
}

/// Whether the folders hold something that the index does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexIsStale {
    Some,
    None,
}

fn collect_runs(
    files: &dyn Files,
    base: &Base,
    known: &HashMap<String, DevflowRun>,
) -> Result<(Vec<DevflowRun>, IndexIsStale), Error> {
    let mut runs = Vec::new();
    let mut same = 0;
    for id in ids(files, base)? {
        match known.get(&id).filter(|run| run.stamp == DevflowRun::stamp_of(&base.run(&id))) {
            Some(run) => {
                same += 1;
                runs.push(run.clone());
            }
            None => runs.push(DevflowRun::read(base, &id)),
        }
    }
    let news = if same == runs.len() && same == known.len() { IndexIsStale::None } else { IndexIsStale::Some };
    runs.sort_by_cached_key(DevflowRun::order);
    Ok((runs, news))
}

/// The ids of all runs: the names of the folders that are not hidden.
fn ids(files: &dyn Files, base: &Base) -> Result<Vec<String>, Error> {
    let folder = base.runs();
    let paths = match files.list(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        paths => paths.map_err(|error| Error::at(&folder, Problem::Unreadable, error))?,
    };
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let folders = paths.iter().filter(|path| path.is_dir()).filter_map(|path| name(path));
    Ok(folders.filter(|name| !name.starts_with('.')).collect())
}

/// The entries of an index; none if it is missing or damaged.
fn entries_of(path: &Path) -> HashMap<String, DevflowRun> {
    let read = Source::open(path, Passes::Once).and_then(|mut source| source.read_whole(INDEX_SIZE_MAX));
    let text = read.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let list = Object::parse(&text).and_then(|document| document.peek("runs")).and_then(items);
    let runs = list.unwrap_or_default().into_iter().filter_map(DevflowRun::of_entry);
    runs.map(|run| (run.id.clone(), run)).collect()
}

fn document(runs: &[DevflowRun], now: &Time<'_>) -> String {
    let entries: Vec<String> = runs
        .iter()
        .map(|run| {
            let mut draft = run.draft();
            draft.set_str("stamp", &run.stamp);
            draft.render(None)
        })
        .collect();
    let updated = quote(&now.to_iso().unwrap_or_default());
    spelled(&format!("{{\"runs\":[{}],\"lastUpdated\":{updated}}}", entries.join(",")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::Disk;
    use crate::layouts::devflow::RunStatus;

    fn now() -> Time<'static> {
        Time::iso("2026-03-02T09:14:05Z".into()).unwrap()
    }

    fn run(base: &Base, id: &str, metadata: &str) {
        fs::create_dir_all(base.run(id)).unwrap();
        fs::write(base.run(id).join("metadata.json"), metadata).unwrap();
    }

    fn metadata(started: &str, status: &str) -> String {
        format!(
            r#"{{"flowId":"review","startedAt":"{started}","endedAt":"0001-01-01T00:00:00Z","status":"{status}","totalTokensIn":3,"totalTokensOut":4,"totalCost":0.5,"turnCount":2}}"#
        )
    }

    #[test]
    fn runs_are_listed_newest_first_and_unreadable_ones_too() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        run(&base, "a", &metadata("2026-01-01T10:00:00+02:00", "completed"));
        run(&base, "b", &metadata("2026-01-01T09:00:00Z", "failed"));
        run(&base, "c", "{\"flow");
        run(&base, "d", &metadata("2026-01-01T09:00:00Z", "resting"));
        fs::create_dir_all(base.run(".removed-e")).unwrap();
        let runs = list(&Disk, &base, &now()).unwrap();
        let statuses: Vec<(&str, RunStatus)> = runs.iter().map(|run| (run.id.as_str(), run.status)).collect();
        assert_eq!(
            statuses,
            [
                ("d", RunStatus::Unreadable),
                ("b", RunStatus::Failed),
                ("a", RunStatus::Completed),
                ("c", RunStatus::Unreadable)
            ]
        );
        assert!(runs[3].problem.as_ref().unwrap().contains("metadata.json") && runs[1].problem.is_none());
        assert!(runs[0].problem.as_ref().unwrap().contains("resting"));
        assert_eq!((runs[1].tokens_in, runs[1].tokens_out, runs[1].cost.as_deref()), (3, 4, Some("0.5")));
    }

    #[test]
    fn an_index_is_made_again_when_it_is_missing_damaged_or_behind() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        run(&base, "a", &metadata("2026-01-01T09:00:00Z", "running"));
        let first = list(&Disk, &base, &now()).unwrap();
        let text = fs::read_to_string(base.index()).unwrap();
        assert!(
            text.starts_with("{\n  \"runs\": [\n    {\n      \"runId\": \"a\",\n      \"flowId\": \"review\",\n"),
            "{text}"
        );
        assert!(text.ends_with("\"lastUpdated\": \"2026-03-02T09:14:05Z\"\n}"), "{text}");
        assert_eq!(entries_of(&base.index()).into_values().collect::<Vec<_>>(), first);

        run(&base, "a", &metadata("2026-01-01T09:00:00Z", "completed"));
        assert_eq!(list(&Disk, &base, &now()).unwrap()[0].status, RunStatus::Completed);
        assert!(fs::read_to_string(base.index()).unwrap().contains("completed"));
        fs::write(base.index(), "[1,").unwrap();
        assert_eq!(list(&Disk, &base, &now()).unwrap().len(), 1);
        assert!(fs::read_to_string(base.index()).unwrap().contains("completed"));
        fs::remove_dir_all(base.run("a")).unwrap();
        assert!(list(&Disk, &base, &now()).unwrap().is_empty());
        assert!(!fs::read_to_string(base.index()).unwrap().contains("completed"));
    }

    #[test]
    fn an_index_that_is_up_to_date_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        run(&base, "a", &metadata("2026-01-01T09:00:00Z", "completed"));
        list(&Disk, &base, &now()).unwrap();
        let later = Time::iso("2026-03-03T00:00:00Z".into()).unwrap();
        list(&Disk, &base, &later).unwrap();
        assert!(fs::read_to_string(base.index()).unwrap().contains("2026-03-02T09:14:05Z"));
    }

    #[test]
    fn many_at_once_leave_one_whole_index() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let base = &base;
                scope.spawn(move || {
                    for number in 0..5 {
                        run(base, &format!("{thread}-{number}"), &metadata("2026-01-01T09:00:00Z", "completed"));
                        update(&Disk, base, &now()).unwrap();
                    }
                });
            }
        });
        assert_eq!(entries_of(&base.index()).len(), 40);
    }

    #[test]
    fn a_transcript_tells_what_metadata_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        let transcript = format!(
            r#"{{"runId":"x","metadata":{},"turns":[{{"id":1,"role":"system","content":"S","timestamp":"2026-01-01T09:00:00Z"}},{{"id":2,"role":"user","content":"Why <b>?","timestamp":"2026-01-01T09:00:00Z"}}]}}"#,
            metadata("2026-01-01T09:00:00Z", "failed").replace(r#","turnCount":2"#, "")
        );
        fs::create_dir_all(base.run("x")).unwrap();
        fs::write(base.run("x").join("transcript.json"), &transcript).unwrap();
        fs::write(base.run("x").join("transcript.json.gz"), b"\x1f\x8bnonsense").unwrap();
        let read = DevflowRun::read(&base, "x");
        assert_eq!((read.status, read.turn_count, read.flow.as_str()), (RunStatus::Failed, Some(2), "review"));
        assert_eq!(read.query.as_deref(), Some("Why <b>?"));
        assert_eq!(read.moment(), Time::iso("2026-01-01T09:00:00Z".into()).unwrap().to_seconds());
        // Half a transcript still has a head.
        fs::write(base.run("x").join("transcript.json"), &transcript[..transcript.len() - 20]).unwrap();
        assert_eq!(DevflowRun::read(&base, "x").flow, "review");
    }
}
