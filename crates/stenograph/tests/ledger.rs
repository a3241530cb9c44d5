//! Golden ledgers: every folder in `ledger/` has sources that state the same calls in some odd way, and the expected ledger.
//! Laws also hold for each: with files in any order, with sources in parts, as native events, and with copies.
//!
//! `STENO_UPDATE=1` writes the golden files; review them like code.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use stenograph::format::Format;
use stenograph::ledger::{
    CallCounter, CallDetail, CountingState, Ledger, LedgerBuilder, LedgerEntry, SourceUsage, Tools,
};
use stenograph::model::Event;
use stenograph::text::quote;
use stenograph::{Detected, Registry};
use stenograph::{read, wire};

/// The name of the golden file of a case.
const GOLDEN: &str = "ledger.golden";

/// The most files of which every order is tried.
const FILES_MAX: usize = 5;

/// A check of one case.
type Law = fn(&Path) -> Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger");
    let mut folders: Vec<PathBuf> = list(&root).into_iter().filter(|path| path.is_dir()).collect();
    folders.sort();
    let mut trials = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let laws: [(&str, Law); 7] = [
            ("golden", golden),
            ("any order", any_order),
            ("pieces", pieces),
            ("tools", tools),
            ("usage alone", usage_alone),
            ("native", native),
            ("native beside it", native_beside),
        ];
        for (law, check) in laws {
            let folder = folder.clone();
            trials.push(Trial::test(format!("{name}/{law}"), move || check(&folder)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn list(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A source: its name, its format and its events.
struct Source {
    name: String,
    format: &'static dyn Format,
    bytes: Vec<u8>,
    events: Vec<Event<'static>>,
}

impl Source {
    fn of(name: String, bytes: Vec<u8>) -> Result<Source, Failed> {
        let format = match Registry::built_in().detect(&bytes) {
            Detected::Format(format) => format,
            other => return Err(format!("{name}: detected as {other:?}").into()),
        };
        let events = read::all(format, &bytes).events;
        Ok(Source { name, format, bytes, events })
    }

    fn usage(&self, detail: CallDetail) -> SourceUsage {
        self.usage_of(&self.events, detail, CountingState::default())
    }

    fn usage_of(&self, events: &[Event<'static>], detail: CallDetail, state: CountingState) -> SourceUsage {
        let mut counting = CallCounter::resumed(self.format.info().agent, detail, state);
        self.begin(&mut counting);
        events.iter().for_each(|event| counting.add(event));
        counting.finish()
    }

    fn begin(&self, counting: &mut CallCounter) {
        let first = self.events.iter().find_map(|event| event.time.as_ref());
        first.into_iter().for_each(|time| counting.begin(time));
    }

    /// The session that the name of the file implies.
    fn session(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The same events as a native source.
    fn native(&self) -> Result<Source, Failed> {
        let lines: Vec<String> = self.events.iter().map(|event| wire::event(event) + "\n").collect();
        Source::of(format!("{}.native", self.name), lines.concat().into_bytes())
    }
}

fn sources(folder: &Path) -> Result<Vec<Source>, Failed> {
    let mut files = list(folder);
    files.retain(|path| path.file_name().is_some_and(|name| name != GOLDEN));
    files.sort();
    if files.is_empty() {
        return Err("a golden without a source".into());
    }
    files
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Source::of(name, fs::read(path)?)
        })
        .collect()
}

fn ledger<'s>(parts: impl IntoIterator<Item = (&'s Source, SourceUsage)>) -> Ledger {
    let mut builder = LedgerBuilder::default();
    for (source, usage) in parts {
        builder.add(&source.name, Some(source.session()), 0, usage);
    }
    builder.finish()
}

fn whole<'s>(sources: impl IntoIterator<Item = &'s Source>, detail: CallDetail) -> Ledger {
    ledger(sources.into_iter().map(|source| (source, source.usage(detail))))
}

/// How much of a ledger is compared: a law that changes positions cannot promise the same ones.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// Rows and decisions with their positions, and the number of records of each.
    Places,
    /// Rows, and the number of decisions of each kind.
    Counts,
    /// Only rows.
    Rows,
}

fn text_of(ledger: &Ledger, depth: Depth) -> String {
    let mut text = String::new();
    for entry in &ledger.entries {
        text.push_str(&row_text(ledger, entry, depth));
        text.push('\n');
    }
    if depth == Depth::Rows {
        return text;
    }
    for decision in &ledger.decisions {
        let _ = write!(text, "{{\"reason\":\"{}\",\"count\":{}", decision.reason.name(), decision.count);
        if depth == Depth::Places {
            let place = |(source, line): &(u32, u64)| quote(&format!("{}:{line}", ledger.source(*source)));
            let places: Vec<String> = decision.examples.iter().map(place).collect();
            let _ = write!(text, ",\"at\":[{}]", places.join(","));
        }
        text.push_str("}\n");
    }
    text
}

fn row_text(ledger: &Ledger, entry: &LedgerEntry, depth: Depth) -> String {
    let row = &entry.row;
    let mut text = String::from("{");
    let named = |name| ledger.name(name).map(quote);
    let names = [
        ("agent", Some(row.agent)),
        ("session", row.session),
        ("subagent", row.thread),
        ("model", row.model),
        ("cwd", row.cwd),
        ("branch", row.branch),
    ];
    for (key, name) in names.into_iter().filter_map(|(key, name)| Some((key, named(name)?))) {
        let _ = write!(text, "\"{key}\":{name},");
    }
    let time = row.time.and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    if let Some(time) = time {
        let _ = write!(text, "\"time\":\"{time}\",");
    }
    let keys = ["input", "output", "cache_read", "cache_write", "cache_write_hour", "reasoning", "searches", "fetches"];
    for (key, counter) in keys.into_iter().zip(row.tokens.counters()).filter(|(_, counter)| *counter > 0) {
        let _ = write!(text, "\"{key}\":{counter},");
    }
    if let Some(stated) = row.stated_cost {
        let _ = write!(text, "\"stated\":{stated},");
    }
    if row.tools.iter().len() > 0 {
        let mut tools: Vec<String> = row.tools.iter().filter_map(|tool| named(Some(tool))).collect();
        tools.sort();
        let _ = write!(text, "\"tools\":[{}],", tools.join(","));
    }
    let _ = write!(text, "\"pace\":\"{}\",\"how\":\"{:?}\",\"calls\":{}", row.service_tier.name(), row.kind, row.calls);
    if depth == Depth::Places {
        let place = quote(&format!("{}:{}", ledger.source(entry.source), row.line));
        let _ = write!(text, ",\"records\":{},\"at\":{place}", row.records);
    }
    text.push('}');
    text
}

fn same(what: &str, expected: &str, found: &str) -> Result<(), Failed> {
    if expected == found {
        return Ok(());
    }
    let line = expected.lines().zip(found.lines()).take_while(|(one, other)| one == other).count();
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    Err(format!("{what}, line {}:\n  expected {}\n  found    {}", line + 1, show(expected), show(found)).into())
}

fn golden(folder: &Path) -> Result<(), Failed> {
    let found = text_of(&whole(&sources(folder)?, CallDetail::Tools), Depth::Places);
    let path = folder.join(GOLDEN);
    if std::env::var_os("STENO_UPDATE").is_some() {
        return Ok(fs::write(path, found)?);
    }
    same("golden", &fs::read_to_string(path).unwrap_or_default(), &found)
}

/// The ledger does not depend on the order of files.
fn any_order(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    if sources.len() > FILES_MAX {
        return Err("too many files to try every order".into());
    }
    let expected = text_of(&whole(&sources, CallDetail::Tools), Depth::Counts);
    let mut orders = vec![Vec::new()];
    for next in 0..sources.len() {
        let put = |order: &Vec<usize>, at: usize| {
            let mut order = order.clone();
            order.insert(at, next);
            order
        };
        orders = orders.iter().flat_map(|order| (0..=order.len()).map(move |at| put(order, at))).collect();
    }
    for order in orders {
        let ordered = order.iter().filter_map(|at| sources.get(*at));
        let found = text_of(&whole(ordered, CallDetail::Tools), Depth::Counts);
        same(&format!("in the order {order:?}"), &expected, &found)?;
    }
    Ok(())
}

/// Counting a source in two parts gives the same result as counting it at once, wherever it is split between two records.
fn pieces(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    let expected = text_of(&whole(&sources, CallDetail::Tools), Depth::Rows);
    for (number, source) in sources.iter().enumerate().filter(|(_, source)| source.format.info().traits.pieces) {
        let offset = |at: usize| source.events.get(at).and_then(|event| event.at).map(|at| at.offset);
        for cut in (1..source.events.len()).filter(|at| offset(*at) != offset(at - 1)) {
            let mut parts = Vec::new();
            for (other, source) in sources.iter().enumerate() {
                if other != number {
                    parts.push((source, source.usage(CallDetail::Tools)));
                    continue;
                }
                let (one, two) = source.events.split_at(cut);
                let first = source.usage_of(one, CallDetail::Tools, CountingState::default());
                let second = source.usage_of(two, CallDetail::Tools, first.state.clone());
                parts.extend([(source, first), (source, second)]);
            }
            let what = format!("{} cut before event {cut}", source.name);
            same(&what, &expected, &text_of(&ledger(parts), Depth::Rows))?;
        }
    }
    Ok(())
}

/// Collecting tools changes no number.
fn tools(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    let without_tools = |detail: CallDetail| {
        let mut ledger = whole(&sources, detail);
        ledger.entries.iter_mut().for_each(|entry| entry.row.tools = Tools::default());
        text_of(&ledger, Depth::Places)
    };
    same("with tools", &without_tools(CallDetail::Numbers), &without_tools(CallDetail::Tools))
}

/// Reading only usage counts the same as reading everything, in chunks of any size.
fn usage_alone(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    let expected = text_of(&whole(&sources, CallDetail::Numbers), Depth::Places);
    for size in [1, 7, 1 << 20] {
        let parts = sources.iter().map(|source| {
            let mut counting = CallCounter::new(source.format.info().agent, CallDetail::Numbers);
            source.begin(&mut counting);
            let mut reading = read::Reading::new(source.format, stenograph::format::Wanted::Usage);
            source.bytes.chunks(size).for_each(|chunk| reading.feed(chunk, &mut counting));
            reading.end(&mut counting);
            (source, counting.finish())
        });
        same(&format!("in chunks of {size} bytes"), &expected, &text_of(&ledger(parts), Depth::Places))?;
    }
    Ok(())
}

/// The events of a source, written in the native format, state the same calls.
fn native(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    let natives = sources.iter().map(Source::native).collect::<Result<Vec<_>, _>>()?;
    let expected = text_of(&whole(&sources, CallDetail::Tools), Depth::Rows);
    same("as native events", &expected, &text_of(&whole(&natives, CallDetail::Tools), Depth::Rows))
}

/// A native copy beside its source counts nothing twice.
fn native_beside(folder: &Path) -> Result<(), Failed> {
    let sources = sources(folder)?;
    let natives = sources.iter().map(Source::native).collect::<Result<Vec<_>, _>>()?;
    let expected = text_of(&whole(&sources, CallDetail::Tools), Depth::Rows);
    let both = || sources.iter().zip(&natives);
    let after = both().flat_map(|(source, native)| [source, native]);
    same("with a native copy", &expected, &text_of(&whole(after, CallDetail::Tools), Depth::Rows))?;
    let before = both().flat_map(|(source, native)| [native, source]);
    same("with a native copy first", &expected, &text_of(&whole(before, CallDetail::Tools), Depth::Rows))
}
