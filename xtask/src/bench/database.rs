//! Measures indexing of conversations in a database: its rate against the same lines in files, an unchanged run, and peak memory.
//! The lines of the files are those that the command makes of the rows, so both index the same events.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use rusqlite::{Connection, Transaction, params};

use super::again_in_release;
use super::goals::{Goals, median};
use super::process::{RunCost, run_and_measure};
use super::scale::built;
use crate::{Failure, corpus, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The size of the database
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = corpus::size)]
    size: u64,
    /// How often each run is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A folder on the disk to measure; needs space for three times the size
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The command to measure, instead of building one
    #[arg(long)]
    steno: Option<PathBuf>,
}

/// The database may take this many times as long as the files.
const TIME_RATIO_MAX: f64 = 2.0;

/// An unchanged run may take this many seconds.
const UNCHANGED_S_MAX: f64 = 0.1;

/// The goal of `steno index` for its own memory.
const MEMORY_MB_MAX: f64 = 256.0;

/// The turns of a conversation: as many bytes as usual ones have.
const TURNS: u64 = 100;

/// Runs the benchmark on a release build, unless the options name another command.
pub fn database(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) && options.steno.is_none() {
        return again_in_release();
    }
    let steno = match &options.steno {
        Some(steno) => steno.canonicalize().map_err(|error| format!("{}: {error}", steno.display()))?,
        None => built()?,
    };
    let folder = options.folder.clone().unwrap_or_else(|| tree::root().join("target"));
    fs::create_dir_all(&folder)?;
    let folder = tempfile::tempdir_in(&folder)?;
    let [rows, files] = ["rows", "files"].map(|name| folder.path().join(name));
    let sessions = generate(options.size, &rows, &files)?;
    println!("{sessions} conversations, {} MB of rows", options.size / 1_000_000);
    let mut first: [Vec<RunCost>; 2] = Default::default();
    let mut unchanged: [Vec<RunCost>; 2] = Default::default();
    for _ in 0..options.rounds.max(1) {
        for (at, root) in [&rows, &files].into_iter().enumerate() {
            let store = tempfile::tempdir_in(folder.path())?;
            let index = || {
                let mut command = Command::new(&steno);
                command.args(["index", "--root"]).arg(root).env("STENO_HOME", store.path());
                run_and_measure(&mut command)
            };
            first.get_mut(at).into_iter().try_for_each(|runs| index().map(|cost| runs.push(cost)))?;
            unchanged.get_mut(at).into_iter().try_for_each(|runs| index().map(|cost| runs.push(cost)))?;
        }
    }
    let seconds = |runs: &[RunCost]| median(runs.iter().map(|run| run.wall.as_secs_f64()));
    let memory = |runs: &[RunCost]| runs.iter().map(|run| run.own_kb as f64 / 1024.0).fold(0.0, f64::max);
    let [rows, files] = &first;
    let [rows_again, files_again] = &unchanged;
    let mut goals = Goals::default();
    Goals::print("first index of the files", seconds(files), "s");
    Goals::print("first index of the database", seconds(rows), "s");
    goals.at_most("database / files, time", seconds(rows) / seconds(files), TIME_RATIO_MAX, "");
    Goals::print("unchanged run, files", seconds(files_again), "s");
    goals.at_most("unchanged run, database", seconds(rows_again), UNCHANGED_S_MAX, "s");
    Goals::print("own memory, files", memory(files), "MB");
    goals.at_most("own memory, database", memory(rows), MEMORY_MB_MAX, "MB");
    goals.end()
}

/// Writes a database of about this many bytes below a home folder, and its lines as files below another one.
fn generate(size: u64, rows: &Path, files: &Path) -> Result<u64, Failure> {
    let home = rows.join(".local/share/opencode");
    fs::create_dir_all(&home)?;
    fs::create_dir_all(files)?;
    let mut connection = Connection::open(home.join("opencode.db"))?;
    connection.execute_batch(TABLES)?;
    let transaction = connection.transaction()?;
    let (mut written, mut sessions) = (0, 0);
    while written < size {
        sessions += 1;
        let mut out = BufWriter::new(File::create(files.join(format!("{sessions}.jsonl")))?);
        written += Conversation::new(sessions).write(&transaction, &mut out)?;
        out.flush()?;
    }
    transaction.commit()?;
    Ok(sessions)
}

/// The tables and indexes that the agent creates, without those that no row here needs.
const TABLES: &str = "PRAGMA journal_mode = WAL;
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,
      time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE INDEX message_session ON message (session_id, time_created, id);
    CREATE INDEX part_message ON part (message_id, id);
    CREATE INDEX part_session ON part (session_id);";

/// A generated conversation.
struct Conversation {
    id: String,
    number: u64,
    rows: u64,
    written: u64,
}

/// A message under way.
struct Message<'m> {
    id: &'m str,
    /// What its parts inherit.
    inherited: &'m str,
}

impl Conversation {
    fn new(number: u64) -> Conversation {
        Conversation { id: format!("ses_{number:012x}"), number, rows: 0, written: 0 }
    }

    /// Writes the rows, and their lines. Returns how many bytes the lines have.
    fn write(mut self, database: &Transaction<'_>, out: &mut dyn std::io::Write) -> Result<u64, Failure> {
        let (id, title) = (self.id.clone(), format!("Wheel {}", self.number));
        let time = self.time();
        database
            .prepare_cached(
                "INSERT INTO session VALUES (?1, 'global', NULL, 'wheel', '/home/ada/engine', ?2, '1.18.0', ?3, ?3)",
            )?
            .execute(params![id, title, time])?;
        self.line(
            out,
            &format!(
                "{{\"table\":\"session\",\"id\":\"{id}\",\"project_id\":\"global\",\"parent_id\":null,\"slug\":\"wheel\",\
                 \"directory\":\"/home/ada/engine\",\"title\":\"{title}\",\"version\":\"1.18.0\",\"time_created\":{time},\
                 \"time_updated\":{time}}}\n"
            ),
        )?;
        for turn in 0..TURNS {
            self.turn(turn, database, out)?;
        }
        Ok(self.written)
    }

    /// One turn: a question, thinking, a call with its result, an answer.
    fn turn(&mut self, turn: u64, database: &Transaction<'_>, out: &mut dyn std::io::Write) -> Result<(), Failure> {
        let number = self.number * TURNS + turn;
        let listing: String = (0..60)
            .map(|line| format!("{line:>5}\\tlet value_{} = wheel(\\\"{}\\\");\\n", number + line, line * 7))
            .collect();
        let question = self.message(database, out, "{\"role\":\"user\",\"agent\":\"build\"}")?;
        let asked = Message { id: &question, inherited: "{\"role\":\"user\"}" };
        let text = format!("Turn the wheel number {number} and say what it prints.\\nThen stop.");
        self.part(database, out, &asked, &format!("{{\"type\":\"text\",\"text\":\"{text}\"}}"))?;
        let answer = self.message(
            database,
            out,
            &format!(
                "{{\"role\":\"assistant\",\"parentID\":\"{question}\",\"modelID\":\"wheel-1\",\"providerID\":\"engine\",\"cost\":0.001,\
                 \"path\":{{\"cwd\":\"/home/ada/engine\",\"root\":\"/\"}},\"tokens\":{{\"input\":{},\"output\":{},\"reasoning\":3,\
                 \"cache\":{{\"read\":{},\"write\":0}}}},\"finish\":\"stop\"}}",
                1 + number % 97,
                1 + number % 811,
                number % 100_003
            ),
        )?;
        let said = Message { id: &answer, inherited: "{\"role\":\"assistant\",\"model\":\"wheel-1\"}" };
        let (moved, nothing) = ("It turns. ".repeat(20), "Nothing else moved. ".repeat(12));
        for data in [
            format!("{{\"type\":\"reasoning\",\"text\":\"The wheel {number} has a lever. {moved}\"}}"),
            format!(
                "{{\"type\":\"tool\",\"tool\":\"read\",\"callID\":\"call_{number:016x}\",\"state\":{{\"status\":\"completed\",\
                 \"input\":{{\"filePath\":\"/home/ada/engine/wheel_{number}.rs\"}},\"output\":\"{listing}\",\"title\":\"wheel\",\
                 \"metadata\":{{\"preview\":\"{listing}\"}},\"time\":{{\"start\":{0},\"end\":{0}}}}}}}",
                self.time()
            ),
            format!("{{\"type\":\"text\",\"text\":\"It prints {number}. {nothing}\"}}"),
        ] {
            self.part(database, out, &said, &data)?;
        }
        Ok(())
    }

    fn message(
        &mut self,
        database: &Transaction<'_>,
        out: &mut dyn std::io::Write,
        data: &str,
    ) -> Result<String, Failure> {
        let (id, session, time) = (self.row_id("msg"), self.id.clone(), self.time());
        database
            .prepare_cached("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)")?
            .execute(params![id, session, time, data])?;
        self.line(
            out,
            &format!(
                "{{\"table\":\"message\",\"id\":\"{id}\",\"session_id\":\"{session}\",\"time_created\":{time},\"time_updated\":{time},\
                 \"data\":{data}}}\n"
            ),
        )?;
        Ok(id)
    }

    fn part(
        &mut self,
        database: &Transaction<'_>,
        out: &mut dyn std::io::Write,
        message: &Message<'_>,
        data: &str,
    ) -> Result<(), Failure> {
        let (id, session, time, Message { id: of, inherited }) =
            (self.row_id("prt"), self.id.clone(), self.time(), message);
        database
            .prepare_cached("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)")?
            .execute(params![id, of, session, time, data])?;
        self.line(
            out,
            &format!(
                "{{\"table\":\"part\",\"message\":{inherited},\"id\":\"{id}\",\"message_id\":\"{of}\",\"session_id\":\"{session}\",\
                 \"time_created\":{time},\"time_updated\":{time},\"data\":{data}}}\n"
            ),
        )
    }

    fn line(&mut self, out: &mut dyn std::io::Write, line: &str) -> Result<(), Failure> {
        self.written += line.len() as u64;
        Ok(out.write_all(line.as_bytes())?)
    }

    fn row_id(&mut self, kind: &str) -> String {
        self.rows += 1;
        format!("{kind}_{:08x}{:06x}", self.number, self.rows)
    }

    fn time(&self) -> i64 {
        let millis = 1_760_000_000_000 + self.number * 3_600_000 + self.rows * 1000;
        i64::try_from(millis).unwrap_or(i64::MAX)
    }
}
