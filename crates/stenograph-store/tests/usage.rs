//! The law of two ways: usage is the same whether it is read from the files or from the index. Checked over the sources of the
//! golden ledgers, over files that grow, change, move and disappear, and over the shared corpus if it is available.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use stenograph::ledger::{self, By, CallDetail, Ledger, LedgerBuilder, Prices, UsageQuery};
use stenograph_store::discover::Places;
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, run};
use stenograph_store::usage::{UsageRequest, UsageRunReport, UseIndex, pages};

struct Ground {
    _folder: tempfile::TempDir,
    home: PathBuf,
    store: Store,
}

impl Ground {
    fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(folder.path()).unwrap().join("home");
        fs::create_dir_all(&home).unwrap();
        let store = Store::new(folder.path().join("store"));
        Ground { _folder: folder, home, store }
    }

    /// A home whose agents hold the sources of the golden ledgers.
    fn with_goldens() -> Ground {
        let ground = Ground::new();
        for (case, name, bytes) in goldens() {
            ground.write(&format!("{case}/{name}"), &bytes);
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn append(&self, name: &str, bytes: &[u8]) {
        fs::File::options().create(true).append(true).open(self.path(name)).unwrap().write_all(bytes).unwrap();
    }

    fn index(&self, archiving: Archiving) {
        index(&self.store, &Places::below(self.home.clone()), archiving);
    }

    fn usage(&self, index: UseIndex, calls: CallDetail) -> (UsageRunReport, Ledger) {
        usage(&self.store, &self.home, index, calls)
    }

    /// Checks that both ways agree, and returns the result.
    #[track_caller]
    fn agree(&self, what: &str) -> String {
        agree(&self.store, &self.home, what)
    }
}

fn goldens() -> Vec<(String, String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/tests/ledger");
    let mut found = Vec::new();
    for case in fs::read_dir(root).unwrap().flatten() {
        for file in fs::read_dir(case.path()).unwrap().flatten() {
            let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
            if name(&file) != "ledger.golden" {
                found.push((name(&case), name(&file), fs::read(file.path()).unwrap()));
            }
        }
    }
    assert!(found.len() > 20);
    found.sort();
    // Every case is separate: no two share a session.
    for (number, (_, _, bytes)) in found
        .chunk_by_mut(|one, other| one.0 == other.0)
        .enumerate()
        .flat_map(|(number, case)| case.iter_mut().map(move |file| (number, file)))
    {
        for session in ["019a", "5a1c"] {
            *bytes = replaced(bytes, session.as_bytes(), format!("{session:.2}{number:02}").as_bytes());
        }
    }
    found
}

/// Replaces one piece of bytes, which need not be text, with another of the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}

fn index(store: &Store, places: &Places, archiving: Archiving) {
    // Far in the future, so that no file was changed just now.
    let now = 4_000_000_000_000_000_000;
    let plan = IndexPlan { places, scope: IndexScope::All, archiving, memory: 256 << 20, threads: 1, now };
    run(store, &plan, &mut NoObserver).unwrap();
}

fn usage(store: &Store, home: &Path, index: UseIndex, calls: CallDetail) -> (UsageRunReport, Ledger) {
    let places = Places::below(home.to_owned());
    let below = [home.to_owned()];
    let request = UsageRequest { places: Some(&places), files: &[], below: &below, store, index, calls, threads: 2 };
    let mut book = LedgerBuilder::default();
    let report = pages(&request, &mut NoObserver, &mut |source| {
        book.add(&source.path.to_string_lossy(), source.session.as_deref(), source.written, source.page);
    })
    .unwrap();
    (report, book.finish())
}

/// Every row with all its fields, and every sum.
fn describe(ledger: &Ledger, calls: CallDetail) -> String {
    let mut text = String::new();
    for entry in &ledger.entries {
        let row = &entry.row;
        let names =
            [Some(row.agent), row.session, row.thread, row.model, row.cwd, row.branch].map(|name| ledger.name(name));
        let mut tools: Vec<_> = row.tools.iter().map(|tool| ledger.name(Some(tool))).collect();
        tools.sort();
        let tools = if calls == CallDetail::Tools { tools } else { Vec::new() };
        let (tokens, source) = (row.tokens.counters(), ledger.source(entry.source));
        let fields = (row.time, row.service_tier, row.stated_cost, row.kind, row.calls, row.line);
        writeln!(text, "{names:?} {tokens:?} {fields:?} {tools:?} {source}").unwrap();
    }
    let prices = Prices::shipped();
    for by in By::ALL {
        if by == By::Tool && calls == CallDetail::Numbers {
            continue;
        }
        let mut question = UsageQuery {
            by,
            then_by: None,
            zone: jiff::tz::TimeZone::UTC,
            prices: &prices,
            project: &mut |folder, _| folder.to_owned(),
            keep: &mut |_| true,
        };
        let report = ledger::report(ledger, &mut question);
        for group in report.groups.iter().chain([&report.total]) {
            let money = (group.cost, group.stated, group.compared);
            writeln!(text, "{by:?} {:?} {:?} {} {money:?}", group.key, group.tokens.counters(), group.calls).unwrap();
        }
    }
    text
}

#[track_caller]
fn agree(store: &Store, home: &Path, what: &str) -> String {
    let descriptions = [CallDetail::Numbers, CallDetail::Tools].map(|calls| {
        let [files, known] =
            [UseIndex::No, UseIndex::Yes].map(|index| describe(&usage(store, home, index, calls).1, calls));
        if let Some((file, index)) = files.lines().zip(known.lines()).find(|(file, index)| file != index) {
            panic!("{what}, {calls:?}:\n  files {file}\n  index {index}");
        }
        assert_eq!(files.lines().count(), known.lines().count(), "{what}, {calls:?}");
        files
    });
    descriptions.concat()
}

#[test]
fn the_sources_of_the_golden_ledgers_count_alike() {
    let ground = Ground::with_goldens();
    let (report, before) = ground.usage(UseIndex::Yes, CallDetail::Numbers);
    assert_eq!(report.known, 0);
    assert!(before.entries.len() > 50);
    ground.index(Archiving::No);
    ground.agree("indexed at once");
    let (report, after) = ground.usage(UseIndex::Yes, CallDetail::Numbers);
    assert_eq!((report.read, report.warnings.len()), (0, 0));
    assert_eq!(describe(&before, CallDetail::Numbers), describe(&after, CallDetail::Numbers));
}

#[test]
fn files_that_grow_line_by_line_count_alike_whether_or_not_they_were_indexed_since() {
    let ground = Ground::new();
    let goldens: Vec<_> = goldens().into_iter().filter(|(_, name, _)| name.ends_with(".jsonl")).collect();
    let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let longest = goldens.iter().map(|(_, _, bytes)| lines(bytes).len()).max().unwrap();
    for step in 0..longest {
        for (case, name, bytes) in &goldens {
            if let Some(line) = lines(bytes).get(step) {
                ground.append(&format!("{case}/{name}"), line);
            }
        }
        // Every other time the index is out of date.
        if step % 2 == 0 {
            ground.index(Archiving::No);
        }
        ground.agree(&format!("after {} lines", step + 1));
    }
}

/// Large files are counted from where the index ended; a file that only seems to have grown is read whole.
#[test]
fn a_large_file_that_grew_or_was_rewritten_counts_alike() {
    let ground = Ground::new();
    let record = |number: usize, output: usize| {
        let padding = "x".repeat(4000);
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"00000000-0000-4000-8000-{number:012}\",\"sessionId\":\"large\",\
             \"timestamp\":\"2026-03-02T09:14:05.000Z\",\"requestId\":\"req_{number:08}\",\"message\":{{\"id\":\"msg_{number:08}\",\
             \"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{{\"type\":\"text\",\"text\":\"{padding}\"}}],\
             \"usage\":{{\"input_tokens\":3,\"output_tokens\":{output}}}}}}}\n"
        )
    };
    let all: String = (0..9_000).map(|number| record(number, 7)).collect();
    assert!(all.len() > 33 << 20);
    let name = ".claude/projects/-w/large.jsonl";
    ground.write(name, all.as_bytes());
    ground.index(Archiving::No);
    let indexed = ground.agree("indexed");
    ground.append(name, record(9_001, 5).as_bytes());
    // A final record occurs again: it counts once.
    ground.append(name, record(17, 7).as_bytes());
    let line = record(9_002, 11);
    ground.append(name, &line.as_bytes()[..line.len() / 2]);
    let grown = ground.agree("grown");
    assert_ne!(indexed, grown);
    ground.append(name, &line.as_bytes()[line.len() / 2..]);
    assert_ne!(grown, ground.agree("grown by the rest of a line"));
    let (report, _) = ground.usage(UseIndex::Yes, CallDetail::Numbers);
    assert_eq!((report.read, report.known), (1, 0));
    let other = format!("{}{}", record(20_000, 1), all);
    ground.write(name, other.as_bytes());
    ground.agree("rewritten");
}

#[test]
fn files_that_were_cut_inside_a_line_count_alike() {
    for parts in [2, 3] {
        let ground = Ground::new();
        for part in 0..parts {
            for (case, name, bytes) in &goldens() {
                let (from, to) = (bytes.len() * part / parts, bytes.len() * (part + 1) / parts);
                ground.append(&format!("{case}/{name}"), &bytes[from..to]);
            }
            ground.index(Archiving::No);
            ground.agree(&format!("part {part} of {parts}"));
        }
    }
}

#[test]
fn files_that_are_rewritten_moved_copied_and_deleted_count_alike() {
    let ground = Ground::with_goldens();
    ground.index(Archiving::Yes);
    let all = ground.agree("as they were");
    // Copied: nothing is counted twice.
    let first = "claude-code-streamed/a.jsonl";
    let bytes = fs::read(ground.path(first)).unwrap();
    ground.write("zz-copies/b.jsonl", &bytes);
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(rows(&ground.agree("copied, the index behind")), rows(&all));
    ground.index(Archiving::Yes);
    assert_eq!(rows(&ground.agree("copied")), rows(&all));
    // Moved.
    fs::rename(ground.path(first), ground.path("zz-moved/c.jsonl")).unwrap();
    ground.agree("moved, the index behind");
    ground.index(Archiving::Yes);
    ground.agree("moved");
    // Rewritten, to a longer and to a shorter file.
    for (text, with) in
        [("\"output_tokens\":118", "\"output_tokens\":99118"), ("\"output_tokens\":99118", "\"output_tokens\":1")]
    {
        let path = ground.path("zz-moved/c.jsonl");
        let rewritten = fs::read_to_string(&path).unwrap().replace(text, with);
        fs::write(&path, rewritten).unwrap();
        ground.agree("rewritten, the index behind");
        ground.index(Archiving::Yes);
        ground.agree("rewritten");
    }
}

#[test]
fn costs_survive_the_deletion_of_archived_files() {
    let ground = Ground::with_goldens();
    ground.index(Archiving::Yes);
    let whole = ground.agree("all there");
    for case in fs::read_dir(&ground.home).unwrap().flatten() {
        fs::remove_dir_all(case.path()).unwrap();
    }
    assert!(ground.agree("all gone, the index behind") == whole);
    ground.index(Archiving::Yes);
    assert!(ground.agree("all gone") == whole);
    let (report, _) = ground.usage(UseIndex::Yes, CallDetail::Numbers);
    assert_eq!((report.read, report.known), (0, 0));
    assert!(report.from_archive > 20);
    // Without an index the archive still has it, and so does a new index.
    fs::remove_dir_all(ground.store.folder().join("index")).unwrap();
    assert!(ground.agree("all gone, the index too") == whole);
    ground.index(Archiving::Yes);
    assert!(ground.agree("all gone, the index made anew") == whole);
}

#[test]
fn packed_sources_count_like_their_contents() {
    let ground = Ground::new();
    let (plain, packed) = (Ground::new(), Ground::new());
    for (case, name, bytes) in goldens() {
        plain.write(&format!("{case}/{name}"), &bytes);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        packed.write(&format!("{case}/{name}.gz"), &gzip.finish().unwrap());
        ground.write(&format!("{case}/{name}.zst"), &zstd::encode_all(bytes.as_slice(), 1).unwrap());
    }
    let sums = |ground: &Ground| {
        let description = ground.agree("packed");
        ground.index(Archiving::No);
        assert_eq!(description, ground.agree("packed and indexed"));
        let sums = description.lines().filter(|line| line.starts_with("Agent") || line.starts_with("Model"));
        sums.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = sums(&plain);
    assert!(expected.len() > 8);
    assert_eq!(sums(&packed), expected);
    assert_eq!(sums(&ground), expected);
}

#[test]
fn the_corpus_counts_alike() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(corpus) = fs::canonicalize(&beside) else {
        eprintln!("{}: not at hand, so nothing was compared", beside.display());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("store"));
    index(&store, &Places::below(corpus.clone()), Archiving::No);
    assert!(agree(&store, &corpus, "the corpus").lines().count() > 5000);
    let (report, _) = usage(&store, &corpus, UseIndex::Yes, CallDetail::Numbers);
    assert_eq!(report.read, 0, "{:?}", report.warnings);
}
