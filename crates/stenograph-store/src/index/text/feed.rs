//! A document on its way into the engine, and how much of that there may be at a time. The engine queues documents by the thousand,
//! however large they are; here they are counted by their bytes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tantivy::TantivyDocument;
use tantivy::schema::{Field, document};

use super::Fields;

/// A document to be indexed.
#[derive(Debug)]
pub struct Document {
    inner: TantivyDocument,
    size: usize,
    fields: Fields,
    share: Option<Share>,
}

impl Document {
    pub(super) fn new(fields: Fields) -> Document {
        Document { inner: TantivyDocument::default(), size: 64, fields, share: None }
    }

    /// Adds a text to the field that `choose` names.
    pub fn text(&mut self, choose: impl Fn(&Fields) -> Field, text: &str) {
        self.size += text.len() + 16;
        self.inner.add_text(choose(&self.fields), text);
    }

    /// Sets a number.
    pub fn number(&mut self, choose: impl Fn(&Fields) -> Field, number: u64) {
        self.inner.add_u64(choose(&self.fields), number);
    }

    /// Sets the time.
    pub fn time(&mut self, millis: i64) {
        self.inner.add_i64(self.fields.time, millis);
    }

    /// The document, when there is room for it.
    pub(super) fn loaded(mut self, load: &Load) -> Document {
        self.share = Some(load.take(self.size));
        self
    }
}

impl document::Document for Document {
    type Value<'a> = <TantivyDocument as document::Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as document::Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.inner.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.inner
    }
}

/// How many bytes are on their way.
#[derive(Clone, Debug)]
pub(super) struct Load {
    inner: Arc<(Mutex<usize>, Condvar)>,
    most: usize,
}

/// Bytes on their way; dropped when they have arrived.
#[derive(Debug)]
struct Share {
    load: Load,
    size: usize,
}

impl Load {
    pub(super) fn new(most: usize) -> Load {
        Load { inner: Arc::default(), most }
    }

    /// Waits until there is room. A document larger than everything waits until it is alone.
    fn take(&self, size: usize) -> Share {
        let (held, arrived) = &*self.inner;
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && *held + size > self.most {
            held = arrived.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += size;
        Share { load: self.clone(), size }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let (held, arrived) = &*self.load.inner;
        let mut held: MutexGuard<'_, usize> = held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.saturating_sub(self.size);
        arrived.notify_all();
    }
}
