//! What `opencode export` prints and `opencode import` reads: one document per session. See `README.md` beside this file.

mod rows;
mod write;

use super::opencode_rows::{self, export};
use super::record_map::{Foreign, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Words};
use crate::format::{Format as _, FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{CallWords, ExitCodeAt, Import, Outline, SessionIdKind, SessionWords, UserWords};
use crate::write::Writer;
use write::ExportWriter;

const NAME: &str = "opencode-export";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "opencode",
    title: "OpenCode's exported sessions, one document each",
    framing: Framing::Items(Items::Array("messages")),
    extension: "json",
    homes: &[],
    database: None,
    resume: Some("opencode -s {session}"),
    spec: "anomalyco/opencode, packages/opencode/src/cli/cmd/export.ts, import.ts",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    session: SessionWords { moved_from: &["info.metadata.steno.format"], ..SessionWords::NONE },
    own_only: false,
    spelling: &["info.role", "type", "state.status"],
    totals: &["info.cost", "info.tokens"],
    user: UserWords { flags: &["parts.synthetic"], ..UserWords::NONE },
    calls: CallWords { exit_codes: &[ExitCodeAt::Field("parts.state.metadata.exit")], ..opencode_rows::INFO.calls },
    ..opencode_rows::INFO
};

/// The commands of an agent that reads these documents.
pub(super) const fn import(command: &'static str, remove: &'static str) -> Import {
    Import { format: NAME, command, remove, id: SessionIdKind::Descending("ses_"), of_rows: rows::document }
}

/// The format `opencode-export`.
pub static OPENCODE_EXPORT: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "info.role", foreign: Some(Foreign::Writer(writer)) };

fn writer(format: MappedFormat, outline: &Outline) -> Box<dyn Writer> {
    match outline.origin == NAME {
        true => MappedFormat { foreign: None, ..format }.writer(outline),
        false => Box::new(ExportWriter::new(outline)),
    }
}

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => export::message(word),
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "info.id"),
        (RecordField::ForkSession, "info.metadata.steno.session"),
        (RecordField::Millis, "info.time.created"),
        (RecordField::Cwd, "info.directory"),
        (RecordField::Version, "info.version"),
        (RecordField::Model, "info.model.id"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "info.title", &[])],
    ..RecordMap::NONE
};

static TAIL: RecordMap = RecordMap { parts: &[PartMap::Stated("session_end")], ..RecordMap::NONE };

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let Some(info) = document.peek_object("info") else { return Sniff::No };
    let is_session = ["id", "projectID", "directory", "version", "time"].iter().all(|key| info.has(key));
    if is_session { Sniff::Certain } else { Sniff::No }
}
