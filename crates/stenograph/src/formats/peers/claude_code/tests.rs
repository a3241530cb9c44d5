//! Each part of a rule on a line or two. All lines are synthetic.

use super::counter;
use crate::formats::peers::PeerRule;
use crate::ledger::PeerRows;

/// A whole line: an answer with an id, a request and numbers.
const LINE: &str = r#"{"type":"assistant","timestamp":"2026-03-02T09:14:05.100Z","sessionId":"s1","requestId":"r1","version":"2.1.0","isSidechain":false,"message":{"id":"m1","model":"model-a","usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000}}}"#;

const TOKENS: [u64; 4] = [10, 1, 100, 1000];

/// The line with some of it replaced.
fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(LINE.to_owned(), |line, (from, to)| {
        assert!(line.contains(from), "{from} is not in {line}");
        line.replace(from, to)
    })
}

fn counted(rule: PeerRule, files: &[(&str, &[String])]) -> PeerRows {
    let mut counter = counter(rule);
    for (path, lines) in files {
        counter.source(path);
        for (line, number) in lines.iter().zip(1..) {
            counter.line(number, line.as_bytes());
        }
    }
    counter.finish()
}

/// What comes of these lines in one file.
fn counts(rule: PeerRule, lines: &[String]) -> Vec<[u64; 4]> {
    counted(rule, &[("/home/u/.claude/projects/-p/s1.jsonl", lines)]).token_counts()
}

const OUTPUT: &str = r#""output_tokens":1,"#;
const REQUEST: &str = r#""requestId":"r1","#;

fn output(number: u64) -> String {
    format!("\"output_tokens\":{number},")
}

#[test]
fn ccusage_keeps_the_whole_line_with_the_largest_sum_and_ccstat_the_first() {
    let more = with(&[(OUTPUT, &output(50)), ("\"input_tokens\":10,", "\"input_tokens\":2,")]);
    let lines = [LINE.to_owned(), more.clone(), LINE.to_owned()];
    assert_eq!(counts(PeerRule::Ccusage20, &lines), [[2, 50, 100, 1000]]);
    assert_eq!(counts(PeerRule::FirstRow, &lines), [TOKENS]);
    assert_eq!(counts(PeerRule::FirstRow, &[more, LINE.to_owned()]), [[2, 50, 100, 1000]]);
}

#[test]
fn a_request_is_one_call_in_whatever_sessions() {
    let copy = with(&[("\"s1\"", "\"s2\"")]);
    assert_eq!(counts(PeerRule::Ccusage20, &[LINE.to_owned(), copy]).len(), 1);
    let other = with(&[("\"r1\"", "\"r2\"")]);
    assert_eq!(counts(PeerRule::Ccusage20, &[LINE.to_owned(), other.clone()]).len(), 2);
    assert_eq!(counts(PeerRule::FirstRow, &[LINE.to_owned(), other]).len(), 2);
}

#[test]
fn without_a_request_ccusage_asks_for_the_time_and_ccstat_does_not() {
    let bare = with(&[(REQUEST, "")]);
    let later = with(&[(REQUEST, ""), ("05.100Z", "05.200Z")]);
    let same = with(&[(REQUEST, ""), ("T09:14:05.100Z", "T10:14:05.100+01:00")]);
    let elsewhere = with(&[(REQUEST, ""), ("\"s1\"", "\"s2\"")]);
    let lines = [bare, later, same, elsewhere];
    assert_eq!(counts(PeerRule::Ccusage20, &lines).len(), 3);
    assert_eq!(counts(PeerRule::FirstRow, &lines).len(), 1);
}

#[test]
fn a_line_without_a_message_id_is_always_a_call_for_ccusage() {
    let nameless = with(&[("\"id\":\"m1\",", "")]);
    assert_eq!(counts(PeerRule::Ccusage20, &[nameless.clone(), nameless.clone()]).len(), 2);
    // For ccstat the request alone is a name.
    assert_eq!(counts(PeerRule::FirstRow, &[nameless.clone(), nameless]).len(), 1);
    let none = with(&[("\"id\":\"m1\",", ""), (REQUEST, "")]);
    assert_eq!(counts(PeerRule::FirstRow, &[none.clone(), none]).len(), 2);
}

#[test]
fn a_sidechain_is_joined_within_its_session_and_never_kept_before_another() {
    let side = with(&[("\"isSidechain\":false", "\"isSidechain\":true"), ("\"r1\"", "\"r2\""), (OUTPUT, &output(99))]);
    for lines in [[LINE.to_owned(), side.clone()], [side.clone(), LINE.to_owned()]] {
        assert_eq!(counts(PeerRule::Ccusage20, &lines), [TOKENS]);
    }
    let elsewhere = side.replace("\"s1\"", "\"s2\"");
    assert_eq!(counts(PeerRule::Ccusage20, &[LINE.to_owned(), elsewhere.clone()]).len(), 2);
    // A copy joined by its request makes the call answer to the copy's session, too.
    let copy = with(&[("\"s1\"", "\"s2\"")]);
    assert_eq!(counts(PeerRule::Ccusage20, &[LINE.to_owned(), copy, elsewhere]), [TOKENS]);
}

#[test]
fn of_equal_sums_the_dearer_line_is_kept_and_then_the_one_with_a_speed() {
    let swapped = with(&[("\"input_tokens\":10,", "\"input_tokens\":1,"), (OUTPUT, &output(10))]);
    let cost = |line: &str, cost: &str| line.replacen("{\"type\"", &format!("{{\"costUSD\":{cost},\"type\""), 1);
    let lines = [cost(LINE, "0.5"), cost(&swapped, "0.7"), cost(LINE, "0.6")];
    assert_eq!(counts(PeerRule::Ccusage20, &lines), [[1, 10, 100, 1000]]);
    let known = |line: &str| line.replace("model-a", "claude-sonnet-4-20250514");
    assert_eq!(counts(PeerRule::Ccusage20, &[known(LINE), known(&swapped)]), [[1, 10, 100, 1000]]);
    let fast = |line: &str| line.replace("\"usage\":{", "\"usage\":{\"speed\":\"fast\",");
    let both = counted(PeerRule::Ccusage20, &[("a", &[LINE.to_owned(), fast(LINE)])]);
    assert_eq!(both.rows.first().unwrap().1.service_tier, crate::ledger::ServiceTier::Fast);
    assert_eq!(both.rows.first().unwrap().1.records, 2);
}

#[test]
fn lines_that_ccusage_leaves_out() {
    let lines = [
        with(&[("\"usage\":{", "\"usage\": {")]),
        format!("{LINE}{LINE}"),
        format!("{LINE},"),
        with(&[("\"type\":\"assistant\"", "\"type\":\"assistant\",\"toolUseResult\":{\"deep\":[{\"id\":null}]}")]),
        with(&[("\"r1\"", "null")]),
        with(&[("\"r1\"", "\"\"")]),
        with(&[("\"m1\"", "\"\"")]),
        with(&[("\"s1\"", "\"\"")]),
        with(&[("\"model-a\"", "\"\"")]),
        with(&[("\"2.1.0\"", "\"2.1\"")]),
        with(&[("\"usage\":{", "\"usage\":{\"speed\":\"slow\",")]),
        with(&[("05.100Z", "05.100123Z")]),
        with(&[("05.100Z", "05.100")]),
        with(&[("\"input_tokens\":10,", "\"input_tokens\":-10,")]),
        with(&[("\"input_tokens\":10,", "\"input_tokens\":1.5,")]),
        with(&[("\"input_tokens\":10,", "")]),
        with(&[(OUTPUT, "")]),
        with(&[("\"cache_read_input_tokens\":100", "\"cache_read_input_tokens\":null")]),
        "{\"usage\":{".to_owned(),
    ];
    for line in lines {
        assert!(counts(PeerRule::Ccusage20, std::slice::from_ref(&line)).is_empty(), "{line}");
    }
}

#[test]
fn lines_that_ccusage_counts_though_others_do_not() {
    let lines = [
        with(&[("\"type\":\"assistant\",", "")]),
        with(&[("\"assistant\"", "\"user\"")]),
        with(&[("model-a", "<synthetic>")]),
        with(&[("\"isSidechain\":false", "\"isApiErrorMessage\":true")]),
        with(&[("\"isSidechain\":false", "\"isSidechain\":null,\"uuid\":null")]),
        with(&[("\"usage\":{", "\"usage\":{\"iterations\":[{\"type\":\"message\",\"model\":null}],")]),
    ];
    for line in lines {
        assert_eq!(counts(PeerRule::Ccusage20, std::slice::from_ref(&line)), [TOKENS], "{line}");
    }
}

#[test]
fn what_a_record_passes_on_counts_for_ccusage_with_the_session_around_it() {
    let passed = format!("{{\"type\":\"progress\",\"sessionId\":\"s9\",\"data\":{{\"message\":{LINE}}}}}");
    assert_eq!(counts(PeerRule::Ccusage20, std::slice::from_ref(&passed)), [TOKENS]);
    assert!(counts(PeerRule::FirstRow, std::slice::from_ref(&passed)).is_empty());
    let side = |line: &str| line.replace("\"isSidechain\":false", "\"isSidechain\":true").replace("\"r1\"", "\"r2\"");
    // It is of the outer session, so that the sidechain of that one is the same call, and of the inner one is not.
    let (outer, inner) = (side(&LINE.replace("\"s1\"", "\"s9\"")), side(LINE));
    assert_eq!(counts(PeerRule::Ccusage20, &[passed.clone(), outer]).len(), 1);
    assert_eq!(counts(PeerRule::Ccusage20, &[passed, inner]).len(), 2);
}

#[test]
fn lifetimes_of_a_cache_count_for_ccusage_and_the_flat_number_for_ccstat() {
    let lifetimes = r#""usage":{"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"#;
    let line = with(&[("\"usage\":{", lifetimes)]);
    assert_eq!(counts(PeerRule::Ccusage20, std::slice::from_ref(&line)), [[10, 1, 100, 7]]);
    assert_eq!(counts(PeerRule::FirstRow, std::slice::from_ref(&line)), [TOKENS]);
    let empty = with(&[("\"usage\":{", "\"usage\":{\"cache_creation\":{},")]);
    assert_eq!(counts(PeerRule::Ccusage20, &[empty]), [[10, 1, 100, 0]]);
}

#[test]
fn a_model_that_advised_is_a_call_of_its_own_for_ccusage() {
    let iterations = r#""usage":{"iterations":[{"type":"message","model":"x","input_tokens":9,"output_tokens":9},{"type":"advisor_message","model":"x","input_tokens":7,"output_tokens":8},{"type":"advisor_message","model":null,"input_tokens":5,"output_tokens":5}],"#;
    let line = with(&[("\"usage\":{", iterations)]);
    assert_eq!(counts(PeerRule::Ccusage20, &[line.clone(), line.clone()]), [TOKENS, [7, 8, 0, 0]]);
    assert_eq!(counts(PeerRule::FirstRow, &[line]), [TOKENS]);
}

#[test]
fn a_line_that_names_no_session_is_of_its_place() {
    let bare = [with(&[("\"sessionId\":\"s1\",", ""), (REQUEST, "")])];
    let side = [bare[0].replace("\"isSidechain\":false", "\"isSidechain\":true").replace("05.100Z", "06.000Z")];
    let count =
        |one: &str, other: &str| counted(PeerRule::Ccusage20, &[(one, &bare), (other, &side)]).token_counts().len();
    let projects = "/home/u/.claude/projects";
    let main = format!("{projects}/-p/s1.jsonl");
    assert_eq!(count(&main, &format!("{projects}/-p/s1/subagents/agent-a.jsonl")), 1);
    assert_eq!(count(&main, &format!("{projects}/-p/s1/agent-a.jsonl")), 1);
    assert_eq!(count(&main, &format!("{projects}/-p/s2.jsonl")), 2);
    assert_eq!(count(&main, &format!("{projects}/s1.jsonl")), 2);
    assert_eq!(count("s1.jsonl", &main), 1);
}

#[test]
fn lines_that_ccstat_leaves_out_take_their_key_all_the_same() {
    let left_out = [
        with(&[("\"assistant\"", "\"user\"")]),
        with(&[("model-a", "<synthetic>")]),
        with(&[("\"isSidechain\":false", "\"isApiErrorMessage\":true")]),
        with(&[("2026-03-02T09:14:05.100Z", "today")]),
    ];
    for line in left_out {
        assert!(counts(PeerRule::FirstRow, &[line.clone(), LINE.to_owned()]).is_empty(), "{line}");
    }
    let unreadable = [
        with(&[("\"model\":\"model-a\",", "")]),
        with(&[("\"input_tokens\":10,", "")]),
        with(&[("\"version\":\"2.1.0\"", "\"version\":2")]),
        with(&[("\"isSidechain\":false", "\"isSidechain\":0")]),
        format!("{LINE}{LINE}"),
    ];
    for line in unreadable {
        assert_eq!(counts(PeerRule::FirstRow, &[line.clone(), LINE.to_owned()]), [TOKENS], "{line}");
    }
}

#[test]
fn lines_that_ccstat_counts_though_ccusage_does_not() {
    let lines = [
        with(&[("\"usage\":{", "\"usage\": {")]),
        with(&[("05.100Z", "05.100123Z")]),
        with(&[("\"r1\"", "null")]),
        with(&[("\"2.1.0\"", "\"x\"")]),
    ];
    for line in lines {
        assert_eq!(counts(PeerRule::FirstRow, std::slice::from_ref(&line)), [TOKENS], "{line}");
        assert!(counts(PeerRule::Ccusage20, std::slice::from_ref(&line)).is_empty(), "{line}");
    }
    let short = with(&[(OUTPUT, ""), ("\"cache_read_input_tokens\":100,", "")]);
    assert_eq!(counts(PeerRule::FirstRow, &[short]), [[10, 0, 0, 1000]]);
}

#[test]
fn a_file_that_ends_ccstat_is_said_once() {
    let mut counter = counter(PeerRule::FirstRow);
    counter.source("a.jsonl");
    counter.line(1, b"\xff");
    counter.line(2, b"\xff");
    counter.line(3, LINE.as_bytes());
    let counted = counter.finish();
    assert_eq!((counted.token_counts().len(), counted.warnings.len()), (1, 1), "{:?}", counted.warnings);
}

#[test]
fn a_message_told_of_again_and_again_does_not_take_ever_longer() {
    let bare = with(&[(REQUEST, "")]);
    let lines: Vec<String> = (0..20_000)
        .map(|at| bare.replace("09:14:05.100Z", &format!("{:02}:{:02}:05.100Z", at / 60 % 24, at % 60)))
        .collect();
    assert_eq!(counts(PeerRule::Ccusage20, &lines).len(), 24 * 60);
}
