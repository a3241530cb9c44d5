//! The formats that a program knows. Names from disk or the command line and the beginnings of sources become formats here, and nowhere
//! else.

use std::borrow::Cow;
use std::io;

use crate::format::{Format, Head, Sniff};
use crate::formats::FORMATS;

/// The formats that a program knows: the built-in ones, and those that it adds.
///
/// Functions that read or write take a [`Format`], and events refer to the [`FormatInfo`](crate::format::FormatInfo) of their format.
/// So only code that has a name or the beginning of a source needs a registry. A native stream names the formats of its extra fields;
/// the native reader knows the built-in ones, and keeps any other as a name.
#[derive(Clone, Debug)]
pub struct Registry {
    formats: Cow<'static, [&'static dyn Format]>,
}

static BUILT_IN: Registry = Registry { formats: Cow::Borrowed(FORMATS) };

/// The format of a source, by its beginning.
#[derive(Clone, Debug)]
pub enum Detected {
    /// One format is surer than all others.
    Format(&'static dyn Format),
    /// Several formats are equally sure.
    Tie(Vec<&'static dyn Format>),
    /// No format claims it.
    Unknown,
}

impl Default for Registry {
    /// All built-in formats.
    fn default() -> Registry {
        BUILT_IN.clone()
    }
}

impl Default for &Registry {
    /// All built-in formats.
    fn default() -> Self {
        Registry::built_in()
    }
}

impl Registry {
    /// All built-in formats, for programs that add none.
    pub fn built_in() -> &'static Registry {
        &BUILT_IN
    }

    /// Adds a format. It replaces a format of the same name.
    #[must_use]
    pub fn with(mut self, format: &'static dyn Format) -> Registry {
        let formats = self.formats.to_mut();
        formats.retain(|known| known.info().name != format.info().name);
        formats.push(format);
        self
    }

    /// The formats, in the order people see them.
    pub fn formats(&self) -> impl Iterator<Item = &'static dyn Format> {
        self.formats.iter().copied()
    }

    /// The formats into which sessions of other formats can be converted.
    pub fn targets(&self) -> impl Iterator<Item = &'static dyn Format> {
        self.formats().filter(|format| !format.info().own_only)
    }

    /// The format of that name.
    pub fn named(&self, name: &str) -> Option<&'static dyn Format> {
        self.formats().find(|format| format.info().name == name)
    }

    /// The format of a source that begins with these bytes.
    pub fn detect(&self, head: &[u8]) -> Detected {
        let (_, found) = self.claims(head);
        match found.as_slice() {
            [] => Detected::Unknown,
            [format] => Detected::Format(*format),
            _ => Detected::Tie(found),
        }
    }

    /// The format of a source that begins with `head` and continues with `rest`. If the first line is too long for a head and shows no
    /// format, the lines after it decide.
    pub(crate) fn detect_source(&self, head: &[u8], rest: &mut dyn io::Read) -> io::Result<Detected> {
        match self.detect(head) {
            Detected::Unknown => {
                let later = Head::after_long_line(head, rest)?;
                Ok(later.map_or(Detected::Unknown, |later| self.detect(&later)))
            }
            detected => Ok(detected),
        }
    }

    /// The formats that are surest about a source that begins with these bytes, and how sure they are: at least [`Sniff::Likely`], or the
    /// list is empty.
    pub fn claims(&self, head: &[u8]) -> (Sniff, Vec<&'static dyn Format>) {
        let head = Head::new(head);
        // Records that carry a source name their own format. They look like others where the source says little.
        if let Some(format) = crate::carry::carrier(head.text()).and_then(|name| self.named(&name)) {
            return (Sniff::Certain, vec![format]);
        }
        let mut best = Sniff::Maybe;
        let mut found: Vec<&'static dyn Format> = Vec::new();
        for format in self.formats() {
            let sniff = format.sniff(&head);
            if sniff > best {
                best = sniff;
                found.clear();
            }
            if sniff == best && sniff > Sniff::Maybe {
                found.push(format);
            }
        }
        (best, found)
    }
}
