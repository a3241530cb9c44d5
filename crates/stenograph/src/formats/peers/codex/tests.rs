//! Each part of a rule on a rollout or two. All lines are synthetic.

use super::counter;
use crate::formats::peers::PeerRule;

const PLACE: &str = "/home/u/.codex/sessions/2026/03/02";

fn meta(id: &str, more: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-03-02T09:00:00.000Z","type":"session_meta","payload":{{"id":"{id}","cwd":"/work"{more}}}}}"#
    )
}

fn model(name: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-03-02T09:00:00.000Z","type":"turn_context","payload":{{"cwd":"/work","model":"{name}"}}}}"#
    )
}

fn usage(numbers: [u64; 3]) -> String {
    let [input, cached, output] = numbers;
    format!(r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output}}}"#)
}

/// An event at a second of the clock, with the total so far and what the last call took.
fn count(second: &str, total: Option<[u64; 3]>, last: Option<[u64; 3]>) -> String {
    let field = |name: &str, numbers: Option<[u64; 3]>| numbers.map(|numbers| format!("\"{name}\":{}", usage(numbers)));
    let fields: Vec<String> =
        field("total_token_usage", total).into_iter().chain(field("last_token_usage", last)).collect();
    format!(
        r#"{{"timestamp":"2026-03-02T09:00:{second}Z","type":"event_msg","payload":{{"type":"token_count","info":{{{}}}}}}}"#,
        fields.join(",")
    )
}

fn counts(rule: PeerRule, files: &[(&str, &[String])]) -> Vec<[u64; 4]> {
    let mut counter = counter(rule);
    for (path, lines) in files {
        counter.source(path);
        for (line, number) in lines.iter().zip(1..) {
            counter.line(number, line.as_bytes());
        }
    }
    counter.finish().token_counts()
}

fn one(lines: &[String]) -> Vec<[u64; 4]> {
    counts(PeerRule::Ccusage20, &[(&format!("{PLACE}/rollout-a.jsonl"), lines)])
}

#[test]
fn a_total_told_again_is_nothing_and_else_the_last_call_counts() {
    let lines = [
        meta("a", ""),
        model("m"),
        count("10.000", Some([100, 40, 5]), Some([100, 40, 5])),
        count("11.000", Some([100, 40, 5]), Some([100, 40, 5])),
        // What the last call is said to have taken counts, even where the totals tell otherwise.
        count("12.000", Some([300, 140, 9]), Some([150, 90, 4])),
    ];
    assert_eq!(one(&lines), [[60, 5, 40, 0], [60, 4, 90, 0]]);
}

#[test]
fn without_a_last_call_the_difference_counts_and_a_new_count_is_lost() {
    let lines = [
        count("10.000", Some([100, 40, 5]), None),
        count("11.000", Some([300, 140, 9]), None),
        count("12.000", Some([50, 0, 2]), None),
        count("13.000", None, None),
        count("14.000", None, Some([0, 0, 0])),
    ];
    assert_eq!(one(&lines), [[60, 5, 40, 0], [100, 4, 100, 0]]);
}

#[test]
fn no_more_is_cached_than_was_read() {
    assert_eq!(one(&[count("10.000", None, Some([100, 400, 5]))]), [[0, 5, 100, 0]]);
}

#[test]
fn a_fork_drops_what_repeats_its_parent_up_to_when_it_began() {
    let first = count("00.000", Some([100, 40, 5]), Some([100, 40, 5]));
    let second = count("30.000", Some([300, 140, 9]), Some([200, 100, 4]));
    let parent = [meta("a", ""), first, second];
    let fork = [
        meta("b", ",\"forked_from_id\":\"a\""),
        count("40.000", Some([100, 40, 5]), Some([100, 40, 5])),
        // The parent took as much, but after the fork began: it is a call of the fork's.
        count("50.000", Some([300, 140, 9]), Some([200, 100, 4])),
    ];
    let places = [format!("{PLACE}/rollout-a.jsonl"), format!("{PLACE}/rollout-b.jsonl")];
    let both = counts(PeerRule::Ccusage20, &[(&places[0], &parent), (&places[1], &fork)]);
    assert_eq!(both, [[60, 5, 40, 0], [100, 4, 100, 0], [100, 4, 100, 0]]);
}

#[test]
fn without_its_parent_a_fork_drops_what_it_opens_with_at_one_go() {
    let spawned = r#","source":{"subagent":{"thread_spawn":{"parent_thread_id":"gone"}}}"#;
    let calls = [
        count("10.000", Some([100, 0, 5]), Some([100, 0, 5])),
        count("10.500", Some([200, 0, 6]), Some([100, 0, 1])),
        count("11.500", Some([300, 0, 7]), Some([100, 0, 2])),
        count("15.000", Some([400, 0, 8]), Some([100, 0, 3])),
    ];
    let [own, fork] = [meta("b", ""), meta("b", spawned)].map(|meta| [vec![meta], calls.to_vec()].concat());
    assert_eq!(one(&own).len(), 4);
    assert_eq!(one(&fork), [[100, 3, 0, 0]]);
    // Where the first two are apart, nothing was replayed.
    let late = [vec![meta("b", spawned), count("05.000", None, Some([1, 0, 0]))], calls.to_vec()].concat();
    assert_eq!(one(&late).len(), 5);
}

#[test]
fn equal_events_count_once_over_all_files_and_a_rollout_put_away_only_where_it_is() {
    let lines = [meta("a", ""), model("m"), count("10.000", Some([100, 40, 5]), Some([100, 40, 5]))];
    let other = [meta("c", ""), model("n"), count("10.000", Some([100, 40, 5]), Some([100, 40, 5]))];
    let places = [format!("{PLACE}/rollout-a.jsonl"), format!("{PLACE}/rollout-b.jsonl"), format!("{PLACE}/c.jsonl")];
    let files: [(&str, &[String]); 3] = [(&places[0], &lines), (&places[1], &lines), (&places[2], &other)];
    assert_eq!(counts(PeerRule::Ccusage20, &files).len(), 2);
    let away = "/home/u/.codex/archived_sessions/2026/03/02/rollout-a.jsonl";
    let longer = [&lines[..], &[count("20.000", Some([200, 80, 9]), Some([100, 40, 4]))]].concat();
    assert_eq!(counts(PeerRule::Ccusage20, &[(away, &longer), (&places[0], &lines)]).len(), 1);
    assert_eq!(counts(PeerRule::Ccusage20, &[(away, &longer), (&places[1], &lines)]).len(), 2);
}

#[test]
fn ccstat_looks_only_into_the_folder_itself_and_counts_repeats_and_what_was_cached() {
    let lines = [
        meta("a", ""),
        count("10.000", Some([100, 40, 5]), Some([100, 40, 5])),
        count("11.000", Some([100, 40, 5]), Some([100, 40, 5])),
        count("12.000", Some([150, 40, 6]), None),
    ];
    let here = "/home/u/.codex/sessions/rollout-a.jsonl";
    assert_eq!(counts(PeerRule::FirstRow, &[(here, &lines)]), [[100, 5, 40, 0], [100, 5, 40, 0], [50, 1, 0, 0]]);
    let dated = format!("{PLACE}/rollout-a.jsonl");
    let mut counter = counter(PeerRule::FirstRow);
    counter.source(&dated);
    counter.line(1, lines[1].as_bytes());
    let counted = counter.finish();
    assert!(counted.token_counts().is_empty());
    assert!(counted.warnings[0].contains("1 file elsewhere"), "{:?}", counted.warnings);
}
