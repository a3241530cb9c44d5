//! `steno archive verify`: reads every copy and reports damage. With --repair it first rebuilds the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stenograph::json::Draft;
use stenograph_store::archive::{Archive, ArchiveWriter, Damage, DamagedVersion, Repaired, Verified};
use stenograph_store::files::{Disk, Files};
use stenograph_store::index::Store;

use super::{archive, archive_writer, print_warnings, warnings_json};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::progress::SourceProgress;
use crate::store::{self, StoreArgs};

/// Check every archived copy for damage
///
/// Reads and hashes every copy, and lists the damage: file, byte position and length. The archive remembers the damage, and the next
/// steno index archives the damaged files again if they still exist.
///
/// --repair rebuilds a damaged log from its intact commits and from the copies of commits in the packs. The damaged log stays beside the
/// new one. Pruned sessions stay pruned.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive verify
  steno archive verify --repair                rebuild a damaged log
  steno archive verify --json | jq '.damaged[].path'

Exit codes: 0 no damage, 1 damage found, 2 error")]
pub struct Options {
    #[command(flatten)]
    place: StoreArgs,
    /// Rebuild a damaged log first
    #[arg(long)]
    repair: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    let repaired = if options.repair { Some(repair(&store)?) } else { None };
    let archive = archive(&store)?;
    let stop = Arc::new(AtomicBool::new(false));
    store::on_interrupt(&stop);
    let mut bar: Option<SourceProgress> = None;
    let verified = archive.verify(&mut |at| {
        bar.get_or_insert_with(|| SourceProgress::rate("verifying", at.total)).at(at.done);
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    if verified.is_unrecorded() {
        let mut writer = archive_writer(&store)?;
        writer.record_damage(&verified)?;
        writer.commit(clock::millis())?;
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    let missing = store.missing_copies(&archive)?;
    let has_lost_commits = repaired.as_ref().is_some_and(|repaired| !repaired.lost.is_empty());
    let is_sound =
        verified.damaged.is_empty() && verified.single_commits == 0 && !has_lost_commits && missing.is_empty();
    let status = if is_sound && archive.warnings().is_empty() { ExitStatus::Done } else { ExitStatus::No };
    if options.json {
        let mut draft = Draft::new();
        if let Some(repaired) = &repaired {
            draft.set("repaired", repaired_json(repaired));
        }
        draft.set_number("copies", Some(verified.copies));
        draft.set_number("marked", Some(verified.marked));
        draft.set_number("pieces", Some(verified.pieces));
        draft.set_number("bytes", Some(verified.bytes));
        let damaged: Vec<String> = verified.damaged.iter().map(|damaged| json(damaged, &archive)).collect();
        draft.set("damaged", format!("[{}]", damaged.join(",")));
        let paths: Vec<String> = missing.iter().map(|path| store::path_json(path)).collect();
        draft.set("missing", format!("[{}]", paths.join(",")));
        draft.set_number("unmentioned_blocks", Some(verified.unmentioned));
        draft.set_number("unmentioned_bytes", Some(verified.unmentioned_bytes));
        draft.set_number("single_commits", Some(verified.single_commits));
        draft.set("stopped", is_stopped.to_string());
        draft.set("remarks", warnings_json(archive.warnings()));
        output.line(&harmless_json(&draft.render(None)))?;
        return Ok(status);
    }
    if let Some(repaired) = &repaired {
        report_repair(repaired, output);
    }
    print_warnings(archive.warnings(), output);
    for damaged in &verified.damaged {
        output.line(&harmless_line(&line(damaged, &archive)))?;
    }
    report(&verified, &missing, is_stopped, output);
    Ok(status)
}

/// How many missing copies are named.
const MISSING_MAX: usize = 20;

fn report(verified: &Verified, missing: &[PathBuf], is_stopped: bool, output: &mut Output<'_>) {
    let (copies, bytes) = (counted(verified.copies, "copy").replace("copys", "copies"), store::bytes(verified.bytes));
    output.say(&match verified.damaged.len() {
        _ if is_stopped => format!("stopped: {bytes} intact so far"),
        0 if missing.is_empty() => format!("{copies}, {bytes}: no damage"),
        0 => format!("{copies}, {bytes} intact; {} missing", missing.len()),
        bad => format!("{copies}, {bytes} intact; {bad} damaged"),
    });
    for path in missing.iter().take(MISSING_MAX) {
        output
            .say(&harmless_line(&format!("{}: the index refers to a copy that is not in the archive", path.display())));
    }
    if !missing.is_empty() {
        output.say("hint: run steno index to archive existing files again and to list lost ones");
    }
    if verified.unmentioned > 0 {
        let (count, bytes) = (counted(verified.unmentioned, "block"), store::bytes(verified.unmentioned_bytes));
        output.say(&format!("note: {count} ({bytes}) not used by any commit, left by an interrupted run"));
    }
    if verified.single_commits > 0 {
        let count = counted(verified.single_commits, "commit");
        output.say(&format!("note: {count} in the log without an intact copy in the packs"));
        output.say("hint: write them again with steno archive verify --repair");
    }
    if !verified.damaged.is_empty() {
        output.say(
            "hint: run steno index to archive existing files again; steno archive list --json lists other versions",
        );
    }
}

fn repair(store: &Store) -> Result<Repaired, CommandError> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    Ok(ArchiveWriter::repair(&files, &store.archive())?)
}

fn report_repair(repaired: &Repaired, output: &mut Output<'_>) {
    let Repaired { commits, from_packs, lost, lines_lost, moved_to, to_packs } = repaired;
    if let Some(path) = moved_to {
        let path = harmless_line(&path.display().to_string());
        output.say(&format!("the log was damaged; it is now in {path}"));
    }
    if *from_packs > 0 {
        output.say(&format!("rebuilt the log: {from_packs} of {} came from the packs", counted(*commits, "commit")));
    }
    for (first, last) in lost {
        let which = if first == last { format!("commit {first} is") } else { format!("commits {first} to {last} are") };
        output.say(&format!(
            "{which} lost: damaged both in the log and in the packs; run steno index to archive existing files again"
        ));
    }
    if *lines_lost > 0 {
        output.say(&format!("{} of other commits refer to them and are lost too", counted(*lines_lost, "change")));
    }
    if *to_packs > 0 {
        output.say(&format!("wrote {} into the packs again", counted(*to_packs, "commit")));
    }
    if moved_to.is_none() && *from_packs == 0 && *to_packs == 0 {
        output.say("the log is intact; nothing to repair");
    }
}

fn repaired_json(repaired: &Repaired) -> String {
    let mut draft = Draft::new();
    draft.set_number("commits", Some(repaired.commits));
    draft.set_number("from_packs", Some(repaired.from_packs));
    draft.set_number("to_packs", Some(repaired.to_packs));
    let lost: Vec<String> = repaired.lost.iter().map(|(first, last)| format!("[{first},{last}]")).collect();
    draft.set("lost_commits", format!("[{}]", lost.join(",")));
    draft.set_number("lost_changes", Some(repaired.lines_lost));
    draft.set_opt("moved_to", repaired.moved_to.as_ref().map(|path| path.display().to_string()).as_deref());
    draft.render(None)
}

fn line(damaged: &DamagedVersion, archive: &Archive) -> String {
    let DamagedVersion { copy, version, offset, bytes, damage } = damaged;
    let info = archive.copy(*copy);
    let path = info.as_ref().map(|info| info.path.display().to_string()).unwrap_or_default();
    let version = match info.map_or(0, |info| info.versions.len()) {
        0 | 1 => String::new(),
        _ => format!(" (version {version})"),
    };
    format!("{path}{version}: {} from byte {offset} on: {}", store::bytes(*bytes), reason(*damage))
}

fn json(damaged: &DamagedVersion, archive: &Archive) -> String {
    let mut draft = Draft::new();
    draft.set_number("copy", Some(u64::from(damaged.copy.0)));
    if let Some(info) = archive.copy(damaged.copy) {
        draft.set_str("path", &info.path.display().to_string());
        draft.set_str("format", &info.label.format);
        draft.set_opt("session", info.label.session.as_deref());
    }
    draft.set_number("version", Some(u64::from(damaged.version)));
    draft.set_number("offset", Some(damaged.offset));
    draft.set_number("bytes", Some(damaged.bytes));
    draft.set_str("damage", reason(damaged.damage));
    draft.render(None)
}

fn reason(damage: Damage) -> &'static str {
    match damage {
        Damage::Truncated => "a stored piece ends in the middle",
        Damage::Header | Damage::Body => "the stored bytes are damaged",
        Damage::HashMismatch => "the stored bytes are not those of the source",
        Damage::Unreadable => "a stored piece is missing or cannot be read",
    }
}
