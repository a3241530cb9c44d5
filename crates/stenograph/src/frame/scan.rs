//! Scans a JSON document byte by byte to find where its items begin and end. It must not buffer the document.

use super::{Items, RecordPlace};

/// The state of the scan.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) items: Items,
    pub(super) phase: Phase,
    pub(super) depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string at depth 1, which is a key when a colon follows.
    word: Vec<u8>,
    /// Whether the scan just read the key of the array, so that its value is next.
    key_seen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Prologue,
    Between,
    Item,
    Epilogue,
}

/// The effect of a byte on the current record.
pub(super) enum Step {
    Continue,
    Start,
    EndHere(RecordPlace),
    EndBefore(RecordPlace, Phase),
    Between,
}

impl Scan {
    pub(super) fn new(items: Items) -> Scan {
        Scan {
            items,
            phase: Phase::Prologue,
            depth: 0,
            in_string: false,
            escaped: false,
            word: Vec::new(),
            key_seen: false,
        }
    }

    pub(super) fn place(&self) -> RecordPlace {
        match self.phase {
            Phase::Prologue => RecordPlace::Prologue,
            Phase::Between | Phase::Item => RecordPlace::Item,
            Phase::Epilogue => RecordPlace::Epilogue,
        }
    }

    /// The bracket depth of the items.
    fn item_depth(&self) -> u32 {
        match self.items {
            Items::Array(_) => 2,
            Items::Members | Items::Elements => 1,
        }
    }

    pub(super) fn step(&mut self, byte: u8) -> Step {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            if self.in_string && self.depth == 1 && self.phase == Phase::Prologue && self.word.len() < 256 {
                self.word.push(byte);
            }
            return Step::Continue;
        }
        let item_depth = self.item_depth();
        match (self.phase, byte) {
            (Phase::Between, b' ' | b'\t' | b'\r' | b'\n' | b',') => return Step::Between,
            (Phase::Between, b']' | b'}') => {
                self.phase = Phase::Epilogue;
                self.depth = self.depth.saturating_sub(1);
                return Step::Start;
            }
            (Phase::Between, _) => {
                self.phase = Phase::Item;
                self.enter(byte);
                return Step::Start;
            }
            (Phase::Item, b',') if self.depth == item_depth => {
                self.phase = Phase::Between;
                return Step::EndBefore(RecordPlace::Item, Phase::Between);
            }
            (Phase::Item, b']' | b'}') if self.depth == item_depth => {
                self.phase = Phase::Epilogue;
                self.depth = self.depth.saturating_sub(1);
                return Step::EndBefore(RecordPlace::Item, Phase::Epilogue);
            }
            (Phase::Prologue, b'"') if self.depth == 1 => self.word.clear(),
            (Phase::Prologue, b':') if self.depth == 1 => {
                self.key_seen = matches!(self.items, Items::Array(key) if key.as_bytes() == self.word);
                return Step::Continue;
            }
            (Phase::Prologue, b'[') if self.depth == 1 && self.key_seen => {
                self.depth = 2;
                self.phase = Phase::Between;
                return Step::EndHere(RecordPlace::Prologue);
            }
            (Phase::Prologue, b'{') if self.depth == 0 && self.items == Items::Members => {
                self.depth = 1;
                self.phase = Phase::Between;
                return Step::EndHere(RecordPlace::Prologue);
            }
            (Phase::Prologue, b'[') if self.depth == 0 && self.items == Items::Elements => {
                self.depth = 1;
                self.phase = Phase::Between;
                return Step::EndHere(RecordPlace::Prologue);
            }
            (Phase::Prologue, b' ' | b'\t' | b'\r' | b'\n') => return Step::Continue,
            _ => {}
        }
        if self.phase == Phase::Prologue {
            self.key_seen = false;
        }
        self.enter(byte);
        // A member ends at the next comma, an element at its closing bracket.
        let closes = matches!(byte, b'}' | b']');
        if self.phase == Phase::Item && closes && self.depth == item_depth && self.items != Items::Members {
            self.phase = Phase::Between;
            return Step::EndHere(RecordPlace::Item);
        }
        Step::Continue
    }

    fn enter(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}
