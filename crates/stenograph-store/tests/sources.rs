//! Files and their formats, with real files: the format as a file grows, how much of it is read again, and which files are one
//! session.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use stenograph::Registry;
use stenograph::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use stenograph::frame::Record;
use stenograph::model::{Body, Content, Event, Outline, Role};
use stenograph::query::{Query, Today};
use stenograph::read::{Reader, Sink};
use stenograph::text::Text;
use stenograph::write::{Writer, WriterOutput};
use stenograph_store::discover::Places;
use stenograph_store::index::catalogue::{IndexedSession, SourceRow};
use stenograph_store::index::search::{EntryDetail, Order, SearchRequest};
use stenograph_store::index::{Archiving, IndexPlan, IndexReport, IndexScope, NoObserver, Store, run};
use stenograph_store::source_file::Access;

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

    fn append(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::options().create(true).append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        path
    }

    fn index(&self) -> IndexReport {
        self.index_scope(IndexScope::All)
    }

    fn index_scope(&self, scope: IndexScope) -> IndexReport {
        let places = Places::below(self.home.clone());
        // Far in the future, so that no file was changed just now.
        let now = 4_000_000_000_000_000_000;
        let plan = IndexPlan { places: &places, scope, archiving: Archiving::Yes, memory: 256 << 20, threads: 1, now };
        run(&self.store, &plan, &mut NoObserver).unwrap()
    }

    fn source(&self, path: &Path) -> SourceRow {
        self.store.catalogue().unwrap().source_at(path).unwrap().unwrap()
    }

    fn sessions(&self) -> Vec<IndexedSession> {
        self.store.catalogue().unwrap().sessions().unwrap()
    }
}

const META: &str = r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"0198f2c4-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work/app","originator":"codex_cli_rs","cli_version":"0.40.0"}}
"#;

fn message_line(number: u32) -> String {
    format!(
        r#"{{"timestamp":"2026-01-02T03:04:{:02}.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"walrus {number}"}}]}}}}"#,
        number % 60
    ) + "\n"
}

#[test]
fn records_appended_to_a_codex_file_are_read_alone_and_by_position() {
    let ground = Ground::new();
    let name = ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0198f2c4-0000-7000-8000-000000000001.jsonl";
    let path = ground.append(name, &(META.to_owned() + &(0..2000).map(message_line).collect::<String>()));
    assert_eq!(ground.index().added, 1);
    assert_eq!(ground.source(&path).access, Access::ByRecord);
    let more = message_line(2001);
    ground.append(name, &more);
    let report = ground.index();
    assert_eq!((report.grown, report.rewritten, report.bytes), (1, 0, more.len() as u64));
    assert_eq!(ground.source(&path).doc_group_events + ground.source(&path).tail_events, 2002);
}

const ROLE: &str = "{\"role\":\"user\",\"content\":\"find the walrus\"}\n";
const EVENT: &str = "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}\n";

#[test]
fn a_file_that_turns_out_to_have_another_format_is_read_again() {
    for scoped in [false, true] {
        let ground = Ground::new();
        let path = ground.append("logs/agent.jsonl", ROLE);
        ground.index();
        assert_eq!(ground.source(&path).format, "openai-chat");
        ground.append("logs/agent.jsonl", EVENT);
        let report = match scoped {
            true => ground.index_scope(IndexScope::Files(vec![path.clone()])),
            false => ground.index(),
        };
        assert_eq!((report.grown, report.rewritten, report.unknown.len()), (0, 1, 0), "{report:?}");
        assert_eq!(ground.source(&path).format, "claude-events");
        let sessions = ground.sessions();
        assert_eq!((sessions.len(), sessions[0].calls), (1, 1));
        ground.append("logs/agent.jsonl", EVENT);
        let report = ground.index();
        assert_eq!((report.grown, report.rewritten), (1, 0));
    }
}

#[test]
fn the_path_decides_what_the_first_line_leaves_open() {
    let ground = Ground::new();
    let path = ground.append("app/.goodvibes/transcripts/s1/a1.jsonl", ROLE);
    ground.index();
    assert_eq!(ground.source(&path).format, "claude-events");
    ground.append("app/.goodvibes/transcripts/s1/a1.jsonl", EVENT);
    assert_eq!(ground.index().grown, 1);
}

/// A format of a program's own: `user> hello`.
struct Prompts;

static PROMPTS: FormatInfo = FormatInfo {
    name: "prompts",
    agent: "prompts",
    title: "Lines of a terminal",
    extension: "prompts",
    homes: &["~/.prompts/<session>.prompts"],
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    ..FormatInfo::BLANK
};

impl Format for Prompts {
    fn info(&self) -> &'static FormatInfo {
        &PROMPTS
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        if head.text().starts_with("user> ") { Sniff::Certain } else { Sniff::No }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Prompts)
    }

    fn writer(&self, _outline: &Outline) -> Box<dyn Writer> {
        Box::new(Prompts)
    }
}

impl Reader for Prompts {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        let (role, text) = match record.bytes.strip_prefix(b"user> ") {
            Some(text) => (Role::User, text),
            None => (Role::Assistant, record.bytes),
        };
        let body = Body::Message { role, content: Content::Text(Text::from_bytes(text)) };
        out.event(&Event { at: Some(record.at), ..Event::new(body) });
    }
}

impl Writer for Prompts {
    fn record(&mut self, _events: &[Event<'_>], _out: &mut WriterOutput) {}
}

#[test]
fn a_format_that_a_program_adds_is_indexed_found_and_read() {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::default().with(&Prompts));
    let ground = Ground::new();
    let path = ground.append(".prompts/leap-years.prompts", "user> Is 1900 a leap year?\nNo, a walrus knows that.\n");
    assert_eq!(ground.index().added, 0, "the built-in formats do not have it");
    let ground = Ground { store: Store::with_registry(ground.store.folder(), &REGISTRY), ..ground };
    fs::remove_dir_all(ground.store.index()).unwrap();
    assert_eq!(ground.index().added, 1);
    let row = ground.source(&path);
    assert_eq!((row.format.as_str(), row.known_format().unwrap().info().name), ("prompts", "prompts"));
    assert_eq!(ground.sessions().iter().map(|session| session.name.as_str()).collect::<Vec<_>>(), ["leap-years"]);
    let mut searcher = ground.store.searcher().unwrap();
    let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let query = Query::parse("walrus", &today).unwrap();
    let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 10, within: None };
    let hits = searcher.find(&request).unwrap().hits;
    let mut found = Vec::new();
    searcher
        .read_each(&hits, EntryDetail::Texts, &mut |_, read| found.push(read.unwrap().1.pieces().join(" ")))
        .unwrap();
    assert_eq!(found, ["No, a walrus knows that."]);
    // The file grows, and the format of the row is resolved with the same registry.
    ground.append(".prompts/leap-years.prompts", "user> And 2000?\nYes.\n");
    assert_eq!(ground.index().grown, 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(ground.index().gone, 1);
    fs::remove_dir_all(ground.store.index()).unwrap();
    ground.index();
    assert_eq!(ground.sessions()[0].messages, 4, "the archive has it, and the store knows how to read it");
}
