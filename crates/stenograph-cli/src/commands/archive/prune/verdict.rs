//! Decides whether a session may be removed, and why not.

use stenograph_store::archive::{Archive, CopyInfo, Label, SourceCheck};

use super::Candidate;
use crate::output::counted;

pub(super) enum PruneDecision {
    Goes,
    /// With the reason.
    Stays(String),
}

/// Whether the only copy may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Force {
    No,
    Yes,
}

impl From<bool> for Force {
    fn from(force: bool) -> Force {
        if force { Force::Yes } else { Force::No }
    }
}

pub(super) fn decide(archive: &Archive, candidate: &Candidate, force: Force) -> PruneDecision {
    if candidate.session.marks.pinned {
        return PruneDecision::Stays("pinned; unpin it with steno mark SESSION --unpin".to_owned());
    }
    if candidate.copies.is_empty() {
        // An interrupted run may have left it in the index.
        let is_forgotten = candidate.rows.iter().any(|row| {
            let label = Label { format: row.format.clone(), session: Some(candidate.session.name.clone()) };
            archive.is_session_forgotten(&label)
        });
        return match is_forgotten {
            true => PruneDecision::Goes,
            false => PruneDecision::Stays("not in the archive".to_owned()),
        };
    }
    if force == Force::Yes {
        return PruneDecision::Goes;
    }
    match candidate.copies.iter().find_map(|copy| reason(archive, copy, candidate)) {
        Some(why) => PruneDecision::Stays(why),
        None => PruneDecision::Goes,
    }
}

/// Why a copy must stay.
fn reason(archive: &Archive, copy: &CopyInfo, candidate: &Candidate) -> Option<String> {
    let path = copy.path.display();
    // A moved file has under its new path what was archived under its old one.
    let places = candidate.rows.iter().map(|row| &row.path).filter(|place| **place != copy.path);
    let mut worst = SourceCheck::Nothing;
    for place in std::iter::once(&copy.path).chain(places) {
        match archive.check_source(copy.id, place) {
            Ok(SourceCheck::Whole) => {
                let earlier = (copy.versions.len() as u64).saturating_sub(1);
                let versions = counted(earlier, "earlier version");
                return (earlier > 0).then(|| format!("only the archive has {versions} of {path}"));
            }
            Ok(SourceCheck::Other) if *place == copy.path => worst = SourceCheck::Other,
            Ok(SourceCheck::Other | SourceCheck::Nothing) => {}
            Err(error) => return Some(format!("cannot compare: {error}")),
        }
    }
    Some(match worst {
        SourceCheck::Other => format!("{path} has changed; the archive has the only copy of the old content"),
        SourceCheck::Nothing | SourceCheck::Whole => format!("{path} is gone; the archive has the only copy"),
    })
}
