//! Brings a document and its head up to date with the journal.

use super::DocumentKind;
use super::body::DocumentBody;
use super::document::{CycodDocument, TitleChanged, beginning};
use super::title::{ConversationTitle, DocumentHead};
use crate::completion::{CompletedKind, Completion};
use crate::error::{Error, Problem};
use crate::journal::Recording;
use crate::tail::Warning;

/// Completes a document. Returns warnings.
pub fn complete(document: &mut CycodDocument, recorded: &Recording) -> Result<Vec<Warning>, Error> {
    let kind = document.kind;
    document.head = DocumentHead::of(&beginning(&document.files, &document.path)?, kind);
    let (mut title, mut title_changed) = (document.head.title.clone(), TitleChanged::Elsewhere);
    let mut body = DocumentBody::new(kind);
    let completed_kind = match kind {
        DocumentKind::Chat => CompletedKind::ReplacedLines,
        DocumentKind::Trajectory => CompletedKind::ReplacedText,
    };
    let mut ours = Completion::new(&document.files, &document.path, document.starts_at(), completed_kind)?;
    ours.headed(title.bytes(kind));
    recorded.read(&mut |event| {
        if ConversationTitle::is_about(event) {
            title.take(event);
            title_changed = TitleChanged::Here;
            ours.headed(title.bytes(kind));
        } else {
            ours.next(&body.event(event));
            ours.held_back(body.held_back());
        }
    })?;
    ours.next(&body.finish());
    let completed = ours.end()?;
    document.final_size = completed.end - document.starts_at();
    (document.title, document.title_changed) = (title, title_changed);
    let expected = document.wanted_head();
    if completed.is_whole && expected != document.head.bytes {
        document.replace_head(&expected).map_err(|error| Error::at(&document.path, Problem::Unwritable, error))?;
        document.head = DocumentHead::of(&expected, kind);
    }
    Ok(completed.warnings)
}
