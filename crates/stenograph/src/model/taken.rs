//! Values of the model that are taken from a JSON object.

use super::{Dollars, Usage};
use crate::json::Object;

impl Object<'_> {
    /// Takes an amount of money, however it is spelled.
    pub fn take_dollars(&mut self, key: &str) -> Option<Dollars> {
        self.take_as(key, Dollars::spelled)
    }

    /// Takes the numbers of a usage by their names here, in the order input, output, cache read, cache write, reasoning.
    /// An empty name is none.
    pub fn take_usage(&mut self, names: [&str; 5]) -> Usage {
        let [input, output, cache_read, cache_write, reasoning] = names.map(|name| self.take_number(name));
        Usage { input, output, cache_read, cache_write, reasoning, ..Usage::default() }
    }
}
