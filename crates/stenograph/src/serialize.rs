//! `serde::Serialize` for what the library returns, in one place. Events, notes, usage and positions are spelled by the [`wire`], audits,
//! states and changes by their `put`, and by nothing else; serialise them with `serde_json`, which keeps that spelling byte for byte.

use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::audit::{Audit, Parts};
use crate::calls::{CallOutcome, Decision, OutcomeRule};
use crate::changes::{self, ChangesOutcome, FileChange, Unseen};
use crate::json::Draft;
use crate::loss::LossKind;
use crate::model::{Event, Kind, Note, NoteKind, Outline, Role, Span, Usage};
use crate::session::{SessionCall, SessionUsage};
use crate::status::Status;
use crate::time::Time;
use crate::wire;

macro_rules! spelled_by_name {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    )*};
}

spelled_by_name!(CallOutcome, LossKind, Kind, NoteKind, OutcomeRule, Role);

macro_rules! spelled_by_wire {
    ($($type:ty: $write:expr),* $(,)?) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                RawValue::from_string($write(self)).map_err(S::Error::custom)?.serialize(serializer)
            }
        }
    )*};
}

spelled_by_wire!(
    Event<'_>: wire::event_at,
    Note: wire::note,
    Span: wire::span,
    Usage: wire::usage,
    SessionUsage: |usage: &SessionUsage| wire::usage(&usage.total()),
);

// The command prints these results in the same spelling.
spelled_by_wire!(
    Audit: |audit: &Audit| rendered(|draft| audit.put(Parts::All, draft)),
    Status: |status: &Status| rendered(|draft| status.put(None, draft)),
    ChangesOutcome: |changes: &ChangesOutcome| rendered(|draft| changes.put(draft)),
    FileChange: changes::json::file,
    Unseen: changes::json::unseen,
);

fn rendered(put: impl FnOnce(&mut Draft<'static>)) -> String {
    let mut draft = Draft::new();
    put(&mut draft);
    draft.render(None)
}

impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Decision", 4)?;
        object.serialize_field("call", &self.call)?;
        object.serialize_field("outcome", &self.outcome)?;
        object.serialize_field("rule", &self.rule)?;
        object.serialize_field("exit", &self.exit)?;
        object.end()
    }
}

impl Serialize for SessionCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("SessionCall", 7)?;
        object.serialize_field("tool", self.tool())?;
        object.serialize_field("outcome", &self.outcome())?;
        object.serialize_field("rule", &self.rule())?;
        object.serialize_field("exit", &self.exit())?;
        object.serialize_field("at", &self.event().and_then(|event| event.at))?;
        object.serialize_field("result_at", &self.result().and_then(|event| event.at))?;
        object.serialize_field("decided_at", &self.decided_by().and_then(|event| event.at))?;
        object.end()
    }
}

impl Serialize for Outline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Outline", 15)?;
        object.serialize_field("origin", self.origin)?;
        object.serialize_field("session", &self.session)?;
        object.serialize_field("title", &self.header.title)?;
        object.serialize_field("cwd", &self.header.cwd)?;
        object.serialize_field("branch", &self.header.branch)?;
        object.serialize_field("version", &self.header.version)?;
        object.serialize_field("model", &self.header.model)?;
        object.serialize_field("started", &self.started.as_ref().and_then(Time::to_iso))?;
        object.serialize_field("ended", &self.ended.as_ref().and_then(Time::to_iso))?;
        object.serialize_field("stop", &self.stop)?;
        object.serialize_field("success", &self.success)?;
        object.serialize_field("failure", &self.failure)?;
        object.serialize_field("query", &self.header.query)?;
        object.serialize_field("calls", &self.calls)?;
        object.serialize_field("events", &self.events)?;
        object.end()
    }
}
