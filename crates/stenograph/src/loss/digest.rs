//! An event in about two hundred bytes: enough to find its counterpart on the other side and to tell which fields differ.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::evidence::forwarded_calls;
use crate::json::Object;
use crate::model::{Body, Content, Event, Input, Kind, PieceKind, Role, ServiceTier, Span, Usage};
use crate::text::Text;

/// The compared fields, in the order of [`Digest::fields`].
pub const FIELDS: [&str; 22] = [
    "session",
    "thread",
    "id",
    "parent",
    "group",
    "from",
    "to",
    "time",
    "model",
    "cwd",
    "branch",
    "version",
    "role",
    "name",
    "call",
    "error",
    "usage",
    "pieces",
    "stop_reason",
    "forked_from",
    "request_id",
    "usage_details",
];

/// The index of usage in [`FIELDS`]: formats often keep it in a separate record.
pub const USAGE: usize = 16;

/// Fields that apply until another value is stated: one format may state them once where another repeats them.
pub const STICKY: [usize; 5] = [0, 8, 9, 10, 11];

const ID: usize = 2;
const CALL: usize = 14;

/// The digest of an event.
#[derive(Clone, Debug)]
pub struct Digest {
    /// The kind of the event.
    pub kind: Kind,
    /// A fingerprint of its kind, tool and text.
    pub key: u64,
    /// A fingerprint of each field; 0 if it is not stated.
    pub fields: [u64; FIELDS.len()],
    /// The length of the text.
    pub length: u64,
    /// A fingerprint of the text.
    pub text: u64,
    /// A fingerprint of the ends of several texts; 0 if there is at most one.
    pub texts: u64,
    /// The beginning of the text, to distinguish a cut text from a changed one.
    pub head: Box<[u8]>,
    /// Its extra fields: a fingerprint for each format, and the paths of the fields.
    pub extra: Vec<ExtraDigest>,
    /// The position of its record.
    pub at: Option<Span>,
}

/// The extra fields of an event from one format.
#[derive(Clone, Copy, Debug)]
pub struct ExtraDigest {
    /// A fingerprint of the fields and the format; 0 if the target cannot hold them.
    pub hash: u64,
    /// The number of the list of their paths in [`Paths`].
    pub paths: u32,
}

/// The lists of field paths seen so far. Records of one type have the same fields, so there are few lists.
#[derive(Debug, Default)]
pub struct Paths {
    lists: Vec<Vec<String>>,
    /// The number of a list, by its fingerprint.
    numbers: HashMap<u64, u32>,
    /// The number of paths in all lists.
    paths: usize,
}

/// The most paths in all lists: a source may invent any number of field names.
const PATHS_MAX: usize = 65_536;

impl Paths {
    fn number(&mut self, mut list: Vec<String>) -> u32 {
        let fingerprint = |list: &[String]| xxh3_64(list.join("\n").as_bytes());
        if self.paths + list.len() > PATHS_MAX && !self.numbers.contains_key(&fingerprint(&list)) {
            list = vec!["extra".to_owned()];
        }
        let next = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(fingerprint(&list)).or_insert(next);
        if number == next {
            self.paths += list.len();
            self.lists.push(list);
        }
        number
    }

    /// The list with this number.
    pub fn list(&self, number: u32) -> &[String] {
        self.lists.get(number as usize).map_or(&[], Vec::as_slice)
    }
}

/// The head is as long as the longest text that a format cuts to: two hundred characters of any script.
const HEAD_SIZE_MAX: usize = 832;

impl Digest {
    /// Digests an event. It fingerprints extra fields only for formats that `keeps` accepts.
    pub fn new(event: &Event<'_>, keeps: &dyn Fn(&str) -> bool, paths: &mut Paths) -> Digest {
        let (text, input) = text_of(event);
        let exact = text.as_ref().map(Text::wtf8).unwrap_or_default();
        let text_hash = match input {
            Some(Input::Json(raw)) => xxh3_64(crate::json::canonical(raw).as_bytes()),
            Some(Input::Text(_)) | None => xxh3_64(&exact),
        };
        let kind = event.kind();
        let tool = event.name().filter(|_| matches!(kind, Kind::ToolCall | Kind::Fact | Kind::Other));
        let mut key = vec![kind as u8];
        key.extend_from_slice(&text_hash.to_le_bytes());
        key.extend_from_slice(tool.unwrap_or_default().as_bytes());
        Digest {
            kind,
            key: xxh3_64(&key),
            fields: fields(event),
            length: exact.len() as u64,
            text: text_hash,
            texts: event.content().map_or(0, texts),
            head: exact.get(..HEAD_SIZE_MAX.min(exact.len())).unwrap_or_default().into(),
            extra: extra_digests(event, keeps, paths),
            at: event.at,
        }
    }

    /// Whether it states the usage of a model call.
    pub fn states_usage(&self) -> bool {
        self.fields.get(USAGE).is_some_and(|hash| *hash != 0)
    }

    /// The fingerprints that link two events with different texts: the id of the record and of the call.
    pub fn ties(&self) -> impl Iterator<Item = (Kind, usize, u64)> + '_ {
        [CALL, ID].into_iter().filter_map(|at| match self.fields.get(at) {
            None | Some(0) => None,
            Some(hash) => Some((self.kind, at, *hash)),
        })
    }
}

fn text_of<'e>(event: &'e Event<'_>) -> (Option<Text<'e>>, Option<&'e Input<'e>>) {
    match &event.body {
        Body::ToolCall { input, .. } => (Some(input.to_text()), Some(input)),
        Body::Other { bytes, .. } => (bytes.as_ref().map(Text::borrow), None),
        _ => (event.content().map(Content::joined), None),
    }
}

fn fields(event: &Event<'_>) -> [u64; FIELDS.len()] {
    let text = |text: Option<&str>| text.map_or(0, |text| xxh3_64(text.as_bytes()).max(1));
    let error = match event.body {
        // Most formats do not mark successful results.
        Body::ToolResult { error: Some(true), .. } => 2,
        Body::Stop { success: Some(success), .. } => 3 + u64::from(success),
        _ => 0,
    };
    let time = event.time.as_ref().map_or(0, |time| match time.instant() {
        Some(instant) => xxh3_64(&instant.as_nanosecond().to_le_bytes()).max(1),
        None => text(Some(&time.text)),
    });
    [
        text(event.session.as_deref()),
        text(event.thread.as_deref()),
        text(event.id.as_deref()),
        text(event.parent.as_deref()),
        text(event.group.as_deref()),
        text(event.from.as_deref()),
        text(event.to.as_deref()),
        time,
        text(event.model.as_deref()),
        text(event.cwd.as_deref()),
        text(event.branch.as_deref()),
        text(event.version.as_deref()),
        text(event.role().filter(|role| *role != Role::Unknown).map(Role::name)),
        text(event.name()),
        text(event.call()),
        error,
        usage(event),
        pieces(event),
        text(event.stop_reason.as_deref()),
        text(event.forked_from.as_ref().map(|fork| fork.session.as_ref())),
        text(event.request_id.as_deref()),
        event.usage.as_ref().map_or(0, usage_details),
    ]
}

/// A fingerprint of the usage that an event states: of its own call, or of one of another agent that its record forwards.
pub(super) fn usage(event: &Event<'_>) -> u64 {
    match (&event.usage, event.kind()) {
        (Some(usage), _) => own_usage(usage),
        (None, Kind::Fact) => {
            let forwarded = forwarded_calls(event).into_iter().find_map(|call| call.usage);
            forwarded.map_or(0, |usage| xxh3_64(format!("{usage:?}").as_bytes()))
        }
        (None, _) => 0,
    }
}

/// A count of 0 and a missing count are the same to a reader of the report.
fn own_usage(usage: &Usage) -> u64 {
    let number = |number: Option<u64>| number.unwrap_or(0);
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning].map(number);
    let cost = usage.cost.map_or(0.0, |cost| cost.value());
    if numbers == [0; 5] && cost == 0.0 {
        return 0;
    }
    xxh3_64(format!("{numbers:?} {cost}").as_bytes()).max(1)
}

/// A fingerprint of the usage other than token counts: cache lifetimes, web searches, the service tier.
fn usage_details(usage: &Usage) -> u64 {
    let number = |number: Option<u64>| number.unwrap_or(0);
    let numbers = [usage.cache_write_1h, usage.cache_write_5m, usage.searches, usage.fetches].map(number);
    if numbers == [0; 4] && usage.tier() == ServiceTier::Standard {
        return 0;
    }
    xxh3_64(format!("{numbers:?} {}", usage.tier().name()).as_bytes()).max(1)
}

/// A fingerprint of the ends of several texts.
fn texts(content: &Content<'_>) -> u64 {
    if content.texts().nth(1).is_none() {
        return 0;
    }
    let lengths: Vec<u8> = content.texts().flat_map(|text| text.wtf8().len().to_le_bytes()).collect();
    xxh3_64(&lengths).max(1)
}

/// A fingerprint of the pieces that are not text.
fn pieces(event: &Event<'_>) -> u64 {
    let Some(content) = event.content() else { return 0 };
    let mut hash = 0_u64;
    for piece in content.others() {
        let one = match &piece.kind {
            PieceKind::Text(_) => continue,
            PieceKind::Blob { media, data } => xxh3_64(format!("{media:?} {data:?}").as_bytes()),
            PieceKind::Other(raw) => xxh3_64(crate::json::canonical(raw).as_bytes()),
        };
        hash = hash.rotate_left(7) ^ one.max(1);
    }
    hash
}

/// The JSON of an unset Go `time.Time`.
const ZERO_TIME: &str = r#""0001-01-01T00:00:00Z""#;

/// Adds the paths of a value that has content. Whether the reader opened an object or kept it whole is spelling.
fn add_paths(path: &str, raw: &str, spelling: &[&str], paths: &mut Vec<String>) {
    let within = |spelled: &str| spelled.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    // An empty value, null, and Go's unset time have no content.
    if spelling.contains(&path) || matches!(raw, "null" | "\"\"" | "{}" | "[]" | ZERO_TIME) {
        return;
    }
    match Object::parse(raw).filter(|_| spelling.iter().any(|spelled| within(spelled))) {
        Some(object) => object.pairs().for_each(|(key, raw)| add_paths(&format!("{path}.{key}"), raw, spelling, paths)),
        None => paths.push(format!("extra.{path}")),
    }
}

fn extra_digests(event: &Event<'_>, keeps: &dyn Fn(&str) -> bool, lists: &mut Paths) -> Vec<ExtraDigest> {
    let mut all = Vec::new();
    for (origin, extra) in event.extra.iter() {
        let spelling = origin.info().map_or([].as_slice(), |info| info.spelling);
        let mut paths = Vec::new();
        extra.each("", &mut |path, raw| add_paths(path, raw, spelling, &mut paths));
        let hash = if keeps(origin.name()) {
            let mut json = String::new();
            extra.write_json(&mut json);
            xxh3_64(format!("{} {}", origin.name(), crate::json::canonical(&json)).as_bytes()).max(1)
        } else {
            0
        };
        all.push(ExtraDigest { hash, paths: lists.number(paths) });
    }
    all
}
