//! Documents on their way into the engine, with a limit on their total size. The engine queues thousands of documents of any
//! size; this limits them by bytes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tantivy::TantivyDocument;
use tantivy::schema::{Field, document};

use super::Fields;

/// A document to index.
#[derive(Debug)]
pub struct IndexDocument {
    inner: TantivyDocument,
    size: usize,
    fields: Fields,
    share: Option<InFlightBytes>,
}

impl IndexDocument {
    pub(super) fn new(fields: Fields) -> IndexDocument {
        IndexDocument { inner: TantivyDocument::default(), size: 64, fields, share: None }
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

    /// The document, once the limit allows it.
    pub(super) fn loaded(mut self, load: &InFlightLimit) -> IndexDocument {
        self.share = Some(load.take(self.size));
        self
    }
}

impl document::Document for IndexDocument {
    type Value<'a> = <TantivyDocument as document::Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as document::Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.inner.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.inner
    }
}

/// A limit on the bytes in flight.
#[derive(Clone, Debug)]
pub(super) struct InFlightLimit {
    inner: Arc<(Mutex<usize>, Condvar)>,
    most: usize,
}

/// Bytes in flight; dropping it releases them.
#[derive(Debug)]
struct InFlightBytes {
    load: InFlightLimit,
    size: usize,
}

impl InFlightLimit {
    pub(super) fn new(most: usize) -> InFlightLimit {
        InFlightLimit { inner: Arc::default(), most }
    }

    /// Waits until there is room. A document larger than the limit waits until it is alone.
    fn take(&self, size: usize) -> InFlightBytes {
        let (held, arrived) = &*self.inner;
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && *held + size > self.most {
            held = arrived.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += size;
        InFlightBytes { load: self.clone(), size }
    }
}

impl Drop for InFlightBytes {
    fn drop(&mut self) {
        let (held, arrived) = &*self.load.inner;
        let mut held: MutexGuard<'_, usize> = held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.saturating_sub(self.size);
        arrived.notify_all();
    }
}
