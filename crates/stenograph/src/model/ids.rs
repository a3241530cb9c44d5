//! How far an id identifies what it names. Some agents number their calls and records instead of giving them ids.

/// Whether an id names one call or record, also in other files of its session. A shorter one may be given twice.
pub(crate) fn is_lasting_id(id: &str) -> bool {
    id.len() >= 8
}

/// Whether an id names one record among those of all sessions. A shorter one may number the records of its session.
pub(crate) fn is_global_id(id: &str) -> bool {
    id.len() >= 16
}
