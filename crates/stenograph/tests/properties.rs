//! Properties of writers for any generated stream of events, however odd, in every format: writing does not panic, and the
//! output is well formed, reads back without complaint and is stable. No event comes from a fixture.

use std::borrow::Cow;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use stenograph::convert::rewrite_own;
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::frame::Framing;
use stenograph::model::{
    Body, Content, Data, Event, Extra, ExtraFields, ForkOrigin, Held, Input, Kind, NoteKind, Outline, Part, Piece,
    PieceKind, Role, Usage,
};
use stenograph::model::{ServiceSpeed, ServiceTier};
use stenograph::text::Text;
use stenograph::time::{Time, TimeUnit};
use stenograph::{json, read, wire, write};

/// The number of streams tried with every format, so that all of them take well below a minute. `PROPTEST_CASES` tries more,
/// beginning with the same ones.
const CASES: u32 = 200;

type Events = Vec<Event<'static>>;
type Checked = Result<(), TestCaseError>;

/// Tries a property with every format and reports all formats that violate it.
fn for_every_format(
    streams: impl Strategy<Value = Events>,
    property: impl Fn(&'static dyn Format, &Events) -> Checked,
) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut failures = String::new();
    for format in FORMATS {
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config.clone(), rng(&config));
        let done = runner.run(&streams, |events| property(*format, &events));
        if let Err(TestError::Fail(reason, events)) = done {
            let _ = writeln!(failures, "{}: {reason}", format.info().name);
            for event in &events {
                let _ = writeln!(failures, "  {}", wire::event(event));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The same streams on every machine, so that failures are reproducible. Therefore no failures are saved in a file: each
/// becomes a fixture or a unit test.
fn rng(_config: &Config) -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

fn written(format: &dyn Format, events: &Events) -> Vec<u8> {
    write::all(format, &Outline::of("", events), events)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(2000).collect()
}

#[test]
fn writing_never_panics_for_any_parts_and_extra_fields() {
    for_every_format(prop::collection::vec(wild_event(), 0..12), |format, events| {
        for origin in ["", format.info().name] {
            let bytes = write::all(format, &Outline::of(origin_of(origin), events), events);
            let _ = read::all(format, &bytes);
        }
        Ok(())
    });
}

/// The name of a known format, else an empty one.
fn origin_of(name: &str) -> &'static str {
    FORMATS.iter().map(|format| format.info().name).find(|known| *known == name).unwrap_or("")
}

#[test]
fn output_is_well_formed() {
    for_every_format(stream(), |format, events| {
        let bytes = written(format, events);
        if format.info().traits.lossy {
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(TestCaseError::fail("the output is not UTF-8"));
        };
        let text = text.trim_start_matches('\u{feff}');
        let is_document = format.info().framing != Framing::Lines && json::is_valid(text);
        let bad = text.split('\n').find(|line| !line.trim().is_empty() && !json::is_valid(line));
        if let (false, Some(line)) = (is_document, bad) {
            return Err(TestCaseError::fail(format!("not JSON: {}", shown(line.as_bytes()))));
        }
        let found = read::all(format, &bytes);
        let bad = [NoteKind::NotARecord, NoteKind::Torn, NoteKind::Welded, NoteKind::BadUtf8, NoteKind::DuplicateKey];
        match found.notes.iter().find(|note| bad.contains(&note.kind)) {
            Some(note) => Err(TestCaseError::fail(format!("{note:?} in\n{}", shown(&bytes)))),
            None => Ok(()),
        }
    });
}

#[test]
fn output_is_stable_when_it_is_rewritten() {
    for_every_format(stream(), |format, events| {
        let once = written(format, events);
        let mut twice = Vec::new();
        rewrite_own(format, &mut once.as_slice(), &mut twice)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        if once == twice {
            return Ok(());
        }
        Err(TestCaseError::fail(format!("once:\n{}\ntwice:\n{}", shown(&once), shown(&twice))))
    });
}

#[test]
fn kept_texts_are_whole_or_cut() {
    for_every_format(stream(), |format, events| {
        if format.info().traits.lossy {
            return Ok(());
        }
        let texts: Vec<Vec<u8>> = events
            .iter()
            .flat_map(|event| {
                let content = event.content().into_iter();
                content.flat_map(|content| {
                    content
                        .texts()
                        .map(Text::wtf8)
                        .chain([content.joined().wtf8().into_owned().into()])
                        .map(Cow::into_owned)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let found = read::all(format, &written(format, events));
        for event in found.events.iter().filter(|event| event.kind() == Kind::Message) {
            for text in event.content().into_iter().flat_map(Content::texts) {
                let text = text.wtf8();
                if !is_placeholder(&text) && !texts.iter().any(|known| known.starts_with(&text)) {
                    return Err(TestCaseError::fail(format!("no event has the text {:?}", shown(&text))));
                }
            }
        }
        Ok(())
    });
}

/// Whether a text is a placeholder for content that is not text, in formats that take only text.
fn is_placeholder(text: &[u8]) -> bool {
    let endings: [&[u8]; 4] = [b"[image]", b" images]", b" item that is not text]", b" items that are not text]"];
    text.starts_with(b"[") && endings.iter().any(|ending| text.ends_with(ending))
}

/// Records of one to four events that share their envelope, like those that readers make.
fn stream() -> BoxedStrategy<Events> {
    let record =
        (envelope(), prop::collection::vec((body(), extra(unknown_format())), 1..4), prop::option::of(usage()));
    prop::collection::vec(record, 0..8).prop_map(|records| records.into_iter().flat_map(numbered).collect()).boxed()
}

fn numbered(
    (envelope, bodies, usage): (Event<'static>, Vec<(Body<'static>, Extra<'static>)>, Option<Usage>),
) -> Events {
    let of = bodies.len() as u32;
    let parts = bodies.into_iter().enumerate().map(|(index, (body, extra))| {
        let (part, usage) = (Part { index: index as u32, of }, if index == 0 { usage } else { None });
        Event { part, body, usage, extra, ..envelope.clone() }
    });
    parts.collect()
}

/// An event whose part numbers and extra fields fit nothing, as in an edited native stream.
fn wild_event() -> BoxedStrategy<Event<'static>> {
    let names: Vec<&'static str> = FORMATS.iter().map(|format| format.info().name).collect();
    let part = (0..4_u32, 0..4_u32).prop_map(|(index, of)| Part { index, of });
    (envelope(), body(), part, prop::option::of(usage()), extra(prop::sample::select(names).boxed()), any::<bool>())
        .prop_map(|(envelope, body, part, usage, extra, restates)| Event {
            body,
            part,
            usage,
            extra,
            restates,
            ..envelope
        })
        .boxed()
}

fn envelope() -> BoxedStrategy<Event<'static>> {
    let name = || prop::option::of(name());
    let names = (name(), name(), name(), name(), name());
    let more = (name(), name(), name(), name(), name());
    let fork = (crate::name(), name()).prop_map(|(session, record)| Box::new(ForkOrigin { session, record }));
    (names, more, prop::option::of(time()), (name(), name()), prop::option::of(fork))
        .prop_map(
            |(
                (session, id, parent, group, from),
                (to, model, cwd, branch, version),
                time,
                (stop_reason, request_id),
                forked_from,
            )| Event {
                session,
                id,
                parent,
                group,
                from,
                to,
                model,
                cwd,
                branch,
                version,
                time,
                stop_reason,
                request_id,
                forked_from,
                ..Event::default()
            },
        )
        .boxed()
}

fn time() -> BoxedStrategy<Time<'static>> {
    let seconds = 0..4_000_000_000_u64;
    (seconds, 0..1000_u64, 0..4_usize)
        .prop_map(|(seconds, millis, shape)| {
            let made = match shape {
                0 => Time::number(seconds.to_string().into(), TimeUnit::Seconds),
                1 => Time::number((seconds * 1000 + millis).to_string().into(), TimeUnit::Millis),
                2 => Time::number(format!("{seconds}.{millis:03}").into(), TimeUnit::Seconds),
                _ => {
                    let (hours, minutes) = (seconds % 24, seconds % 60);
                    Time::iso(format!("2026-02-0{}T{hours:02}:{minutes:02}:07.{millis:03}Z", 1 + seconds % 9).into())
                }
            };
            made.unwrap_or(Time { text: "0".into(), unit: TimeUnit::Seconds })
        })
        .boxed()
}

/// Ids and names: usual ones, and hostile ones.
fn name() -> BoxedStrategy<Cow<'static, str>> {
    prop_oneof![
        6 => "[a-z]{1,8}(_[0-9]{1,4})?",
        1 => Just("user".to_owned()),
        1 => Just("assistant".to_owned()),
        1 => Just(String::new()),
        1 => Just("x".repeat(5000)),
        1 => "\\PC{0,12}",
        1 => any::<String>(),
    ]
    .prop_map(Cow::Owned)
    .boxed()
}

/// Lines that have a meaning in one of the text formats.
const MARKERS: [&str; 22] = [
    "user:",
    "assistant:",
    "A:",
    "[Tool call] read",
    "[Tool result] read",
    "[Error]",
    "[USER]: hi",
    "[ASSISTANT]: hi",
    "---",
    "<user_query>",
    "</user_query>",
    "```",
    "````",
    "> quoted",
    "# Title",
    "<tool_calls>",
    "<function_calls>",
    "</invoke>",
    "{\"a\":1}",
    "\\",
    "…",
    "  indented",
];

/// Blank lines in several spellings.
const BLANKS: [&str; 5] = ["", "\r", " ", "\t\r", "\r\r"];

fn text() -> BoxedStrategy<Text<'static>> {
    let marker_lines = prop::collection::vec(
        prop_oneof![
            4 => prop::sample::select(MARKERS.to_vec()).prop_map(str::to_owned),
            2 => prop::sample::select(BLANKS.to_vec()).prop_map(str::to_owned),
            1 => "[a-z ]{0,20}",
        ],
        1..7,
    );
    prop_oneof![
        4 => "[ -~\n]{0,60}".prop_map(Text::from),
        3 => marker_lines.prop_map(|lines| Text::from(lines.join("\n"))),
        1 => Just(Text::from(String::new())),
        1 => Just(Text::from("\n\n".to_owned())),
        1 => any::<String>().prop_map(Text::from),
        1 => Just(Text::from("a\u{0}b\u{1b}[31m\u{7f}\r\n\u{2028}\u{feff}".to_owned())),
        1 => Just(Text::Json(Cow::Borrowed(r"half \ud83d of \udcff a pair \u0041\/"))),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Text::from_bytes(&bytes).into_owned()),
        1 => "[a-z\n]{300,600}".prop_map(|text| Text::from(text.repeat(50))),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Content<'static>> {
    prop_oneof![
        3 => text().prop_map(Content::Text),
        1 => prop::collection::vec(piece(), 0..4).prop_map(Content::Pieces),
    ]
    .boxed()
}

fn piece() -> BoxedStrategy<Piece<'static>> {
    let data = prop_oneof![
        Just(Data::Inline(Text::from("aGVsbG8="))),
        text().prop_map(Data::Url),
        text().prop_map(Data::File)
    ];
    let kind = prop_oneof![
        3 => text().prop_map(PieceKind::Text),
        1 => (prop::option::of(name()), data).prop_map(|(media, data)| PieceKind::Blob { media, data }),
        1 => raw().prop_map(PieceKind::Other),
    ];
    kind.prop_map(|kind| Piece { kind, extra: ExtraFields::default() }).boxed()
}

/// JSON values in unusual spellings.
fn raw() -> BoxedStrategy<Cow<'static, str>> {
    prop::sample::select(vec![
        "{}",
        "null",
        "[1, 2,3]",
        "{\"path\":\"src/a.rs\",\"deep\":{\"list\":[{}]}}",
        "{ \"spaced\" : 1e400 , \"big\":123456789012345678901234567890 }",
        "\"half \\ud83d\"",
        "{\"a\":1,\"a\":2}",
        "-0.0",
        "{\"type\":\"text\",\"text\":\"hi\"}",
    ])
    .prop_map(Cow::Borrowed)
    .boxed()
}

fn body() -> BoxedStrategy<Body<'static>> {
    let role = prop::sample::select(Role::ALL.to_vec());
    let input = prop_oneof![raw().prop_map(Input::Json), text().prop_map(Input::Text)];
    let (some_content, named) = (|| prop::option::of(content()), || prop::option::of(name()));
    let flag = || prop::option::of(any::<bool>());
    prop_oneof![
        4 => (role, content()).prop_map(|(role, content)| Body::Message { role, content }),
        1 => content().prop_map(|content| Body::Thinking { content }),
        2 => (named(), name(), input).prop_map(|(call, name, input)| Body::ToolCall { call, name, input }),
        2 => (named(), named(), content(), flag()).prop_map(|(call, name, content, error)| Body::ToolResult { call, name, content, error }),
        1 => some_content().prop_map(|summary| Body::Compaction { summary }),
        1 => (named(), some_content()).prop_map(|(name, content)| Body::Failure { name, content }),
        1 => (named(), flag(), some_content())
            .prop_map(|(reason, success, content)| Body::Stop { reason, success, content }),
        1 => (name(), some_content()).prop_map(|(name, content)| Body::Fact { fact: name.into(), content }),
        1 => (named(), prop::option::of(text())).prop_map(|(name, bytes)| Body::Other { name, bytes }),
    ].boxed()
}

fn usage() -> BoxedStrategy<Usage> {
    let number =
        || prop::option::of(prop_oneof![0..100_000_u64, Just(u64::from(u32::MAX)), Just(1 << 53), Just(u64::MAX)]);
    let tier = prop::option::of(prop::sample::select(ServiceTier::ALL.to_vec()));
    let speed = prop::option::of(prop::sample::select(vec![ServiceSpeed::Standard, ServiceSpeed::Fast]));
    let counters = prop::array::uniform9(number());
    (counters, tier, speed, prop::option::of(0.0..10.0_f64))
        .prop_map(|(counters, service_tier, speed, cost)| {
            let [input, output, cache_read, cache_write, cache_write_1h, cache_write_5m, reasoning, searches, fetches] =
                counters;
            let cost = cost.and_then(stenograph::model::Dollars::of);
            Usage {
                input,
                output,
                cache_read,
                cache_write,
                cache_write_1h,
                cache_write_5m,
                reasoning,
                searches,
                fetches,
                service_tier,
                speed,
                cost,
            }
        })
        .boxed()
}

/// An unknown format, whose extra fields mean nothing to any writer.
fn unknown_format() -> BoxedStrategy<&'static str> {
    Just("elsewhere").boxed()
}

fn extra(origin: BoxedStrategy<&'static str>) -> BoxedStrategy<Extra<'static>> {
    let held = prop_oneof![Just(Held::Hole), raw().prop_map(Held::Raw)];
    let key = prop_oneof![
        prop::sample::select(vec!["type", "role", "content", "message", "payload", "id"]).prop_map(Cow::Borrowed),
        name()
    ];
    let fields = prop::collection::vec((key, held), 0..4).prop_map(ExtraFields);
    prop::option::of((origin, fields))
        .prop_map(|found| {
            let mut extra = Extra::default();
            if let Some((origin, fields)) = found {
                extra.add(stenograph::formats::origin(Cow::Borrowed(origin)), fields);
            }
            extra
        })
        .boxed()
}
