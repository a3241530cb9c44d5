//! `steno archive verify`: reads everything that is kept, and says which copies are not what they were. It repairs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stenograph::json::Draft;
use stenograph_store::archive::{Archive, Damage, Damaged};

use super::{archive, remarks_json, tell_remarks};
use crate::error::{CommandError, Status};
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::progress::Progress;
use crate::store::{self, Where};

/// Read every copy and compare it with what was kept
///
/// Every piece of every copy is read and hashed again. What is damaged is said by copy: which file, from which byte on, how much of it.
/// Nothing is repaired.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive verify
  steno archive verify --json | jq '.damaged[].path'

Exit codes: 0 everything is what it was, 1 something is damaged, 2 error")]
pub struct Options {
    #[command(flatten)]
    place: Where,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let archive = archive(&options.place.store()?)?;
    let stop = Arc::new(AtomicBool::new(false));
    store::on_interrupt(&stop);
    let mut bar: Option<Progress> = None;
    let verified = archive.verify(&mut |at| {
        bar.get_or_insert_with(|| Progress::rate("verifying", at.total)).at(at.done);
        !stop.load(Ordering::Relaxed)
    });
    drop(bar);
    let is_stopped = stop.load(Ordering::Relaxed);
    let is_well = verified.damaged.is_empty() && archive.remarks().is_empty();
    let status = if is_well { Status::Done } else { Status::No };
    if options.json {
        let mut draft = Draft::new();
        draft.set_number("copies", Some(verified.copies));
        draft.set_number("pieces", Some(verified.pieces));
        draft.set_number("bytes", Some(verified.bytes));
        let damaged: Vec<String> = verified.damaged.iter().map(|damaged| json(damaged, &archive)).collect();
        draft.set("damaged", format!("[{}]", damaged.join(",")));
        draft.set("stopped", is_stopped.to_string());
        draft.set("remarks", remarks_json(archive.remarks()));
        output.line(&harmless_json(&draft.render(None)))?;
        return Ok(status);
    }
    tell_remarks(archive.remarks(), output);
    for damaged in &verified.damaged {
        output.line(&harmless_line(&line(damaged, &archive)))?;
    }
    let (copies, bytes) = (counted(verified.copies, "copy").replace("copys", "copies"), store::bytes(verified.bytes));
    output.say(&match verified.damaged.len() {
        _ if is_stopped => format!("stopped: {bytes} were read"),
        0 => format!("{copies}, {bytes}: everything is what it was"),
        bad => format!("{copies}, {bytes} are what they were; {bad} damaged"),
    });
    if !verified.damaged.is_empty() {
        output.say("hint: other versions of a copy may be whole: steno archive restore PATH --version N -o FILE");
    }
    Ok(status)
}

fn line(damaged: &Damaged, archive: &Archive) -> String {
    let Damaged { copy, version, offset, bytes, damage } = damaged;
    let info = archive.copy(*copy);
    let path = info.as_ref().map(|info| info.path.display().to_string()).unwrap_or_default();
    let version = match info.map_or(0, |info| info.versions.len()) {
        0 | 1 => String::new(),
        _ => format!(" (version {version})"),
    };
    format!("{path}{version}: {} from byte {offset} on: {}", store::bytes(*bytes), reason(*damage))
}

fn json(damaged: &Damaged, archive: &Archive) -> String {
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
        Damage::Torn => "what was stored ends in the middle",
        Damage::Header | Damage::Body => "the stored bytes are damaged",
        Damage::Piece => "what was stored is not what it was",
        Damage::Unreadable => "what was stored is missing or cannot be read",
    }
}
