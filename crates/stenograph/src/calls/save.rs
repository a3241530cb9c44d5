//! Saves the fold between two events: one line of JSON, some kilobytes at most.

use super::Calls;

impl Calls {
    /// The state of the fold, to continue later.
    pub fn save(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Restores a saved fold. If the text is invalid, the fold starts at the next event.
    pub fn restore(saved: &str) -> Calls {
        serde_json::from_str(saved).unwrap_or_default()
    }
}

/// Whether a field need not be saved.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A shared text, saved as a text.
pub(super) mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}
