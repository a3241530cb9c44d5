//! The law of two engines: a query over the index and over the events themselves gives the same answer. Checked over a small
//! tree, and over the shared corpus if it is available.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "a test may fail loudly")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use stenograph::model::Event;
use stenograph::query::{EntryBuilder, Query, Same, SessionFacts, Today, collapse};
use stenograph::read::Sink;
use stenograph_store::discover::Places;
use stenograph_store::index::catalogue::IndexedSession;
use stenograph_store::index::search::{Hit, Order, SearchRequest};
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, run};
use stenograph_store::{Passes, Source};

/// A source to scan.
struct Scanned {
    id: i64,
    is_covered: bool,
    session: i64,
    facts: (String, Vec<String>, Vec<String>),
    format: &'static dyn stenograph::format::Format,
    path: PathBuf,
}

struct Matching<'q> {
    queries: &'q [Query],
    facts: &'q (String, Vec<String>, Vec<String>),
    session: i64,
    entry_builder: EntryBuilder,
    source: i64,
    is_covered: bool,
    event: u64,
    /// The matches of each query.
    found: &'q mut [Vec<Found>],
}

/// A hit of the scan.
#[derive(Clone)]
struct Found {
    same: Same<i64>,
    pieces: Vec<u64>,
    time: Option<i64>,
    source: i64,
    is_covered: bool,
    event: u64,
    part: u32,
}

impl Sink for Matching<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let (agent, projects, sessions) = self.facts;
        let facts = SessionFacts { agent, projects, sessions, ..SessionFacts::default() };
        let (queries, session, source, number) = (self.queries, self.session, self.source, self.event);
        let is_covered = self.is_covered;
        let all = &mut *self.found;
        self.entry_builder.entries(event, &mut |event, entry| {
            for (query, found) in queries.iter().zip(all.iter_mut()) {
                if query.matches(entry, &facts) {
                    // The index stores all but two bits of a twin.
                    let twin = |twin: u64| twin & !3;
                    let same = Same { session, key: entry.key, twin: twin(entry.twin), restates: entry.restates };
                    let pieces = entry.piece_twins.iter().copied().map(twin).collect();
                    let part = event.part.index;
                    found.push(Found { same, pieces, time: entry.time, source, is_covered, event: number, part });
                }
            }
        });
        self.event += 1;
    }
}

fn facts(session: &IndexedSession) -> (String, Vec<String>, Vec<String>) {
    let project = session.project.iter().flat_map(|project| {
        [Some(project.name.clone()), Some(project.root.clone()), project.remote.clone()].into_iter().flatten()
    });
    (session.agent.clone(), project.chain(session.cwd.clone()).collect(), vec![session.name.clone()])
}

/// The shown hits of the scan, the newest first: source, event and the number of copies.
fn shown(found: &[Found]) -> Vec<(i64, u64, usize)> {
    let mut found = found.to_vec();
    found.sort_by_key(|found| (Reverse(found.time), found.source, Reverse(found.event), found.part, found.same.key));
    // What a covered source states in other words is a restatement.
    let stated: BTreeSet<u64> = found.iter().filter(|found| !found.is_covered).map(|found| found.same.key).collect();
    for found in &mut found {
        found.same.restates |= found.is_covered && !stated.contains(&found.same.key);
    }
    let same: Vec<Same<i64>> = found.iter().map(|found| found.same).collect();
    let stating = found.iter().filter(|found| !found.same.restates);
    let pieces = stating.flat_map(|found| found.pieces.iter().map(|piece| (found.same.session, *piece)));
    let shown = collapse(&same, pieces);
    shown.iter().map(|shown| (found[shown.hit].source, found[shown.hit].event, shown.copies.len())).collect()
}

fn agree(home: &Path, queries: &[&str]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("store"));
    let places = Places::below(home.to_owned());
    let (memory, now) = (256 << 20, 4_000_000_000_000_000_000);
    let plan = IndexPlan { places: &places, scope: IndexScope::All, archiving: Archiving::No, memory, threads: 2, now };
    let report = run(&store, &plan, &mut NoObserver).unwrap();
    assert!(report.events > 0);

    let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let parsed: Vec<Query> = queries.iter().map(|query| Query::parse(query, &today).unwrap()).collect();
    let mut searcher = store.searcher().unwrap();
    let sessions: HashMap<i64, IndexedSession> =
        searcher.catalogue().sessions().unwrap().into_iter().map(|session| (session.id, session)).collect();
    let sources = searcher.catalogue().sources().unwrap();
    let scanned = sources.into_iter().filter(|source| source.copy_of.is_none()).map(|source| Scanned {
        id: source.id,
        is_covered: source.covered_by.is_some(),
        session: source.session,
        facts: facts(sessions.get(&source.session).unwrap_or_else(|| panic!("no session: {source:?}"))),
        format: stenograph::Registry::built_in().named(&source.format).unwrap(),
        path: source.path,
    });
    let mut found: Vec<Vec<Found>> = queries.iter().map(|_| Vec::new()).collect();
    for source in scanned {
        let mut matching = Matching {
            queries: &parsed,
            facts: &source.facts,
            session: source.session,
            entry_builder: EntryBuilder::default().through(source.format),
            source: source.id,
            is_covered: source.is_covered,
            event: 0,
            found: &mut found,
        };
        let mut reading = stenograph::read::Reading::new(source.format, stenograph::format::Wanted::All);
        let mut opened = Source::open(&source.path, Passes::Many).unwrap();
        let _ = reading.feed_all(&mut opened.pass().unwrap(), &mut matching);
        reading.end(&mut matching);
    }
    let mut hits = 0;
    for ((text, query), found) in queries.iter().zip(&parsed).zip(&found) {
        let request = SearchRequest { query, order: Order::Newest, offset: 0, limit: usize::MAX / 4, within: None };
        let answer = searcher.find(&request).unwrap();
        assert!(answer.is_exact);
        let indexed: Vec<_> = answer.hits.iter().map(|hit| (hit.source, hit.event, hit.copies)).collect();
        let scanned = shown(found);
        let first = indexed.iter().zip(&scanned).find(|(one, other)| one != other);
        assert_eq!((indexed.len(), first), (scanned.len(), None), "{text}");
        hits += indexed.len();
        // Another order may show another copy, but with the same content. A covered source may state it in other words.
        let is_stated = |hit: &&Hit| !hit.restates && !hit.is_covered;
        let keys = |hits: &[Hit]| -> BTreeSet<u64> { hits.iter().filter(is_stated).map(|hit| hit.key).collect() };
        let best = searcher.find(&SearchRequest { order: Order::Best, ..request }).unwrap();
        assert_eq!(keys(&best.hits), keys(&answer.hits), "{text}");
    }
    hits
}

const QUERIES: &[&str] = &[
    "error",
    "the",
    "cargo test",
    "\"error handling\"",
    "config*",
    "\"test pas\"*",
    "sort_by*",
    "model:gpt-5*",
    "model:claude-op*",
    "file:src/ma*",
    "\"test pas*\"",
    "functoin~",
    "tests~1 -failed",
    "error OR warning",
    "(error OR warning) -the",
    "-the",
    "sort_by_field OR main.rs",
    "问题",
    "题",
    "中文 OR 日本語",
    "role:user",
    "role:assistant the",
    "is:error",
    "has:thinking the",
    "tool:bash",
    "tool:read file:main",
    "file:src",
    "file:rs -tool:edit",
    "model:claude error",
    "model:gpt",
    "branch:main is:error",
    "agent:codex the",
    "agent:claude -has:tool todo",
    "project:cli",
    "since:2025-06-01 until:2026-01-01 error",
    "until:2025-01-01",
    "/fn [a-z_]+\\(/ main",
    "/(?i)todo:/",
    "is:call OR is:result",
    "is:compaction OR is:failure",
];

#[test]
fn the_corpus_gives_the_same_answers() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(corpus) = fs::canonicalize(&beside) else {
        eprintln!("{}: not at hand, so nothing was compared", beside.display());
        return;
    };
    assert!(agree(&corpus, QUERIES) > 10_000);
}

#[test]
fn copies_restatements_and_half_lines_give_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(folder.path()).unwrap();
    let line = |session: &str, number: u32, role: &str, text: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{number:08}-d9cb-469f-a165-708677289501","sessionId":"{session}","timestamp":"2026-01-02T03:{number:02}:00.000Z","cwd":"/work/app","message":{{"role":"{role}","content":"{text}"}}}}"#
        )
    };
    let projects = home.join(".claude/projects/-work-app");
    fs::create_dir_all(&projects).unwrap();
    let (one, two) = ("0f8fad5b-d9cb-469f-a165-70867728950e", "1f8fad5b-d9cb-469f-a165-70867728950e");
    let first =
        [line(one, 1, "user", "walrus 题 中国人民"), line(one, 2, "assistant", "error in the main.rs")].join("\n");
    fs::write(projects.join(format!("{one}.jsonl")), format!("{first}\n")).unwrap();
    // A record inside another one, with two parts.
    let nested = format!(
        r#"{{"type":"progress","uuid":"00000009-d9cb-469f-a165-708677289501","sessionId":"{two}","timestamp":"2026-01-02T03:09:00.000Z","cwd":"/work/app","parentToolUseID":"t0","data":{{"type":"agent_progress","agentId":"a1","message":{{"type":"assistant","uuid":"00000008-d9cb-469f-a165-708677289501","timestamp":"2026-01-02T03:08:00.000Z","message":{{"role":"assistant","id":"m1","model":"m","content":[{{"type":"text","text":"porpoise"}},{{"type":"tool_use","id":"t1","name":"Read","input":{{"file_path":"/work/porpoise"}}}}]}}}}}}}}"#
    );
    let forked = [first.as_str(), &nested, &line(two, 3, "user", "error walrus")].join("\n");
    fs::write(projects.join(format!("{two}.jsonl")), &forked).unwrap();
    fs::write(projects.join("copy.jsonl"), format!("{first}\n")).unwrap();
    let sessions = home.join(".codex/sessions/2026/01/02");
    fs::create_dir_all(&sessions).unwrap();
    let rollout = r#"{"timestamp":"2026-01-02T03:00:00.000Z","type":"session_meta","payload":{"id":"2f8fad5b-d9cb-469f-a165-70867728950e","timestamp":"2026-01-02T03:00:00.000Z","cwd":"/work/app","originator":"x","cli_version":"0.1.0"}}
{"timestamp":"2026-01-02T03:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"walrus error"}]}}
{"timestamp":"2026-01-02T03:00:01.100Z","type":"event_msg","payload":{"type":"user_message","message":"walrus error"}}
{"timestamp":"2026-01-02T03:00:02.000Z","type":"event_msg","payload":{"type":"agent_message","message":"only the event says walrus"}}
"#;
    fs::write(sessions.join("rollout-2026-01-02T03-00-00-2f8fad5b-d9cb-469f-a165-70867728950e.jsonl"), rollout)
        .unwrap();
    assert!(agree(&home, QUERIES) > 10);
    assert_eq!(agree(&home, &["walrus"]), 4);
    assert_eq!(agree(&home, &["porpoise"]), 2);
}
