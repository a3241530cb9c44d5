//! Whole conversations over each API, without a network.

use super::*;
use crate::cassette::{Vendor, What};
use crate::formats::steno::Steno;
use crate::json::Object;
use crate::read::all;

const SESSION: &str = r#"{"v":1,"kind":"message","session":"s1","role":"user","content":"Where is the tide table?"}
{"v":1,"kind":"thinking","model":"claude-x","group":"msg_01","content":"Look first.","extra":{"x":{"signature":"c2ln"}}}
{"v":1,"kind":"message","model":"claude-x","group":"msg_01","role":"assistant","content":"I look. 🌊"}
{"v":1,"kind":"tool_call","model":"claude-x","group":"msg_01","name":"look","call":"c1","input":{"where":"harbour"},"usage":{"input":11,"output":7,"cache_read":5}}
{"v":1,"kind":"tool_result","call":"c1","content":"on the wall"}
{"v":1,"kind":"message","model":"claude-x","group":"msg_02","role":"assistant","content":"It hangs on the wall."}
"#;

fn player(mode: MatchMode) -> CassettePlayer {
    CassettePlayer::new(Tape::of(&all(&Steno, SESSION.as_bytes()).events, None), mode)
}

fn request(vendor: Vendor, body: &str) -> Request {
    vendor.request(body.as_bytes()).unwrap()
}

const CHAT: &str = r#"{"model":"claude-x","messages":[{"role":"user","content":"Where is the tide table?"}]}"#;
const CHAT_2: &str = r#"{"model":"claude-x","stream":true,"stream_options":{"include_usage":true},"messages":[
    {"role":"user","content":[{"type":"text","text":"Where is the tide table?"}]},
    {"role":"assistant","content":"I look. 🌊","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{ \"where\": \"harbour\" }"}}]},
    {"role":"tool","tool_call_id":"c1","content":"on the wall"}]}"#;
const MESSAGES_2: &str = r#"{"model":"claude-x","max_tokens":9,"messages":[
    {"role":"user","content":"Where is the tide table?"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"Look first.","signature":"c2ln"},{"type":"text","text":"I look. 🌊"},
        {"type":"tool_use","id":"c1","name":"look","input":{"where":"harbour"}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"on the wall"}]}]}]}"#;

#[test]
fn the_recorded_conversation_does_not_drift_over_any_api() {
    for second in [request(Vendor::OpenAi, CHAT_2), request(Vendor::Anthropic, MESSAGES_2)] {
        let mut player = player(MatchMode::Strict);
        let first = player.ask(&request(Vendor::OpenAi, CHAT));
        assert_eq!((first.verdict, first.count, first.left), (PlayedAnswer::Answer(0), 0, 1));
        let second = player.ask(&second);
        assert_eq!((second.verdict, second.news), (PlayedAnswer::Answer(1), vec![]));
        assert!(player.is_at_end());
        assert_eq!(player.ask(&request(Vendor::OpenAi, CHAT)).verdict, PlayedAnswer::Ended);
        assert_eq!((player.requests(), player.drifted(), player.given()), (3, 1, 2));
    }
}

#[test]
fn a_difference_is_reported_once_and_counted_in_every_request() {
    let mut player = player(MatchMode::Lenient);
    let other = CHAT.replace("tide table", "tide clock").replace("claude-x", "gpt-x");
    let first = player.ask(&request(Vendor::OpenAi, &other));
    let whats: Vec<What> = first.news.iter().map(|drift| drift.what).collect();
    assert_eq!((first.verdict, whats), (PlayedAnswer::Answer(0), vec![What::Model, What::Changed]));
    let other = CHAT_2.replace("tide table", "tide clock").replace("claude-x", "gpt-x").replace("wall", "floor");
    let second = player.ask(&request(Vendor::OpenAi, &other));
    let whats: Vec<What> = second.news.iter().map(|drift| drift.what).collect();
    assert_eq!((second.count, whats), (3, vec![What::ResultChanged]));
    assert_eq!((player.drifted(), player.differences()), (2, 3));
    let report = player.report();
    let report = Object::parse(&report).unwrap();
    assert_eq!(crate::json::items(report.peek("drift").unwrap()).unwrap().len(), 3);
}

#[test]
fn a_strict_tape_waits_for_the_recorded_request() {
    let mut player = player(MatchMode::Strict);
    let other = request(Vendor::OpenAi, &CHAT.replace("tide", "bus"));
    assert_eq!(player.ask(&other).verdict, PlayedAnswer::Refused(0));
    assert_eq!(player.ask(&other).verdict, PlayedAnswer::Refused(0));
    assert_eq!(player.ask(&request(Vendor::OpenAi, CHAT)).verdict, PlayedAnswer::Answer(0));
}

#[test]
fn prompts_and_tools_cause_remarks_and_no_drift() {
    let mut player = player(MatchMode::Strict);
    let played = player.ask(&request(Vendor::OpenAi, CHAT));
    assert_eq!((played.count, played.remarks), (0, vec![Remark::Tool("look".into())]));
    let offered = CHAT
        .replace("\"messages\"", "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"look\"}}],\"messages\"");
    let mut player = CassettePlayer::new(player.tape().clone(), MatchMode::Strict);
    assert_eq!(player.ask(&request(Vendor::OpenAi, &offered)).remarks, vec![]);
}

/// The data of the frames of a stream.
fn data(frames: &[crate::cassette::StreamFrame]) -> Vec<String> {
    let line = |frame: &crate::cassette::StreamFrame| {
        let text = frame.text.strip_suffix("\n\n").unwrap();
        text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned()
    };
    frames.iter().map(line).collect()
}

#[test]
fn chat_completions_come_whole_and_in_chunks() {
    let player = player(MatchMode::Strict);
    let answer = player.tape().answers().first().unwrap();
    let whole = Vendor::OpenAi.whole(answer, &request(Vendor::OpenAi, CHAT));
    assert_eq!(
        whole,
        "{\"id\":\"chatcmpl-steno000001\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"claude-x\",\"choices\":[{\
         \"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"I look. 🌊\",\"refusal\":null,\"annotations\":[],\
         \"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\
         \"{\\\"where\\\":\\\"harbour\\\"}\"}}]},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}],\"usage\":{\
         \"prompt_tokens\":16,\"completion_tokens\":7,\"total_tokens\":23,\"prompt_tokens_details\":{\"cached_tokens\":5,\
         \"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0,\
         \"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}},\"service_tier\":\"default\",\
         \"system_fingerprint\":null}"
    );
    let chunks = data(&Vendor::OpenAi.frames(answer, &request(Vendor::OpenAi, CHAT_2)));
    let kinds = [
        "{\"role\":\"assistant\"",
        "{\"content\":\"I look. 🌊\"}",
        "\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"\"}",
        "{\"index\":0,\"function\":{\"arguments\":\"{\\\"where\\\":\\\"harbour\\\"}\"}}",
        "\"delta\":{},\"logprobs\":null,\"finish_reason\":\"tool_calls\"",
        "\"choices\":[],\"usage\":{\"prompt_tokens\":16",
        "[DONE]",
    ];
    assert_eq!(chunks.len(), kinds.len(), "{chunks:?}");
    for (chunk, kind) in chunks.iter().zip(kinds) {
        assert!(chunk.contains(kind), "{kind} is not in {chunk}");
    }
}

#[test]
fn messages_come_whole_and_in_events() {
    let player = player(MatchMode::Strict);
    let answer = player.tape().answers().first().unwrap();
    let request = request(Vendor::Anthropic, MESSAGES_2);
    assert_eq!(
        Vendor::Anthropic.whole(answer, &request),
        "{\"id\":\"msg_01\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[\
         {\"type\":\"thinking\",\"thinking\":\"Look first.\",\"signature\":\"c2ln\"},\
         {\"type\":\"text\",\"text\":\"I look. 🌊\",\"citations\":null},\
         {\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"look\",\"input\":{\"where\":\"harbour\"}}],\
         \"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":11,\
         \"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":5,\"output_tokens\":7}}"
    );
    let frames = Vendor::Anthropic.frames(answer, &request);
    let kinds: Vec<String> = data(&frames)
        .iter()
        .map(|data| {
            let event = Object::parse(data).unwrap();
            let delta = event.peek("delta").and_then(Object::parse).and_then(|delta| delta.peek_str("type"));
            delta.or(event.peek_str("type")).unwrap().into_owned()
        })
        .collect();
    let expected = [
        "message_start",
        "ping",
        "content_block_start",
        "thinking_delta",
        "signature_delta",
        "content_block_stop",
        "content_block_start",
        "text_delta",
        "content_block_stop",
        "content_block_start",
        "input_json_delta",
        "input_json_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
}

const RESPONSES_2: &str = r#"{"model":"claude-x","stream":true,"instructions":"Be brief.","tools":[{"type":"function","name":"look"}],"input":[
    {"role":"user","content":"Where is the tide table?"},
    {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look. 🌊"}]},
    {"type":"function_call","call_id":"c1","name":"look","arguments":"{\"where\":\"harbour\"}"},
    {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"on the wall"}]}]}"#;

#[test]
fn responses_come_whole_and_in_events() {
    let mut player = player(MatchMode::Strict);
    let first = r#"{"model":"claude-x","input":"Where is the tide table?"}"#;
    assert_eq!(player.ask(&request(Vendor::Responses, first)).count, 0);
    let second = request(Vendor::Responses, RESPONSES_2);
    assert_eq!(player.ask(&second).news, vec![]);
    let answer = player.tape().answers().first().unwrap();
    let whole = Vendor::Responses.whole(answer, &second);
    let output = Object::parse(&whole).unwrap().peek("output").unwrap();
    assert_eq!(
        output,
        "[{\"id\":\"rs_steno000001_0\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Look first.\"}],\
         \"encrypted_content\":null},{\"id\":\"msg_steno000001_1\",\"type\":\"message\",\"status\":\"completed\",\
         \"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"I look. 🌊\",\"annotations\":[],\"logprobs\":[]}]},\
         {\"id\":\"fc_steno000001_2\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"c1\",\"name\":\"look\",\
         \"arguments\":\"{\\\"where\\\":\\\"harbour\\\"}\"}]"
    );
    let events = data(&Vendor::Responses.frames(answer, &second));
    for (number, event) in events.iter().enumerate() {
        assert_eq!(Object::parse(event).unwrap().take_number("sequence_number"), Some(number as u64));
    }
    let kinds: Vec<String> = events
        .iter()
        .map(|event| Object::parse(event).unwrap().peek_str("type").unwrap().replace("response.", ""))
        .collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn encrypted_thoughts_never_go_to_another_vendor() {
    let sealed = r#"{"v":1,"kind":"message","role":"user","content":"go"}
{"v":1,"kind":"thinking","content":"","extra":{"x":{"encrypted_content":"Z0FB"}}}
{"v":1,"kind":"thinking","content":"","extra":{"x":{"type":"redacted_thinking","data":"cmVk"}}}
{"v":1,"kind":"thinking","content":"Hm.","extra":{"x":{"signature":"c2ln"}}}
{"v":1,"kind":"message","role":"assistant","content":"So."}
"#;
    let tape = Tape::of(&all(&Steno, sealed.as_bytes()).events, None);
    let answer = tape.answers().first().unwrap();
    let spelled = |vendor: Vendor| {
        let request = Request::default();
        let frames: String = vendor.frames(answer, &request).into_iter().map(|frame| frame.text).collect();
        [vendor.whole(answer, &request), frames]
    };
    for text in spelled(Vendor::Anthropic) {
        assert!(text.contains("c2ln") && text.contains("cmVk") && !text.contains("Z0FB"), "{text}");
    }
    for text in spelled(Vendor::Responses) {
        assert!(text.contains("Z0FB") && !text.contains("c2ln") && !text.contains("cmVk"), "{text}");
    }
    for text in spelled(Vendor::OpenAi) {
        assert!(!text.contains("Z0FB") && !text.contains("c2ln") && !text.contains("cmVk"), "{text}");
    }
}

#[test]
fn an_invalid_request_is_refused_with_its_position() {
    let bad = |vendor: Vendor, body: &str| vendor.request(body.as_bytes()).unwrap_err();
    for vendor in [Vendor::OpenAi, Vendor::Anthropic] {
        for body in ["", "{", "[]", "{}", "{\"messages\":7}", "null", "\u{0}"] {
            assert!(!bad(vendor, body).is_empty(), "{body}");
        }
        assert!(
            bad(vendor, r#"{"messages":[{"role":"user","content":"a"},{"role":"king","content":"b"}]}"#).contains('1')
        );
        assert!(bad(vendor, r#"{"messages":[{"content":"a"}]}"#).contains('0'));
        assert!(vendor.request(b"{\"messages\":[\"\xff\"]}").is_err());
    }
}

#[test]
fn a_long_text_is_streamed_whole_in_few_deltas() {
    let long = "é漢🌊x".repeat(30_000);
    let pieces = crate::cassette::vendor::deltas(&long);
    assert!(pieces.len() <= 401, "{}", pieces.len());
    assert_eq!(pieces.concat(), long);
    assert!(crate::cassette::vendor::deltas("").is_empty());
}

/// A request for a title, which agents send besides their conversation.
const TITLE: &str = r#"{"model":"claude-x","max_tokens":900,"messages":[{"role":"user","content":"<session>Where is the tide table?</session>"}],
    "output_config":{"format":{"type":"json_schema","schema":{}}}}"#;

fn with_tools(body: &str) -> String {
    body.replacen('{', r#"{"tools":[{"type":"function","function":{"name":"look"}},{"name":"look"}],"#, 1)
}

#[test]
fn a_side_request_uses_no_answer_and_is_not_drift() {
    for mode in [MatchMode::Lenient, MatchMode::Strict] {
        let mut player = player(mode);
        let title = player.ask(&request(Vendor::Anthropic, TITLE));
        assert_eq!((title.verdict, title.count, title.left), (PlayedAnswer::SideRequest, 0, 2));
        assert!(title.remarks.first().unwrap().line().contains("<session>"), "{:?}", title.remarks);
        assert_eq!(player.ask(&request(Vendor::OpenAi, &with_tools(CHAT))).verdict, PlayedAnswer::Answer(0));
        // An agent that usually offers tools, and now offers none with an unrecorded text, asks something else.
        let summary = r#"{"model":"claude-small","messages":[{"role":"user","content":"What was that about?"}]}"#;
        assert_eq!(player.ask(&request(Vendor::OpenAi, summary)).verdict, PlayedAnswer::SideRequest);
        assert_eq!(player.ask(&request(Vendor::OpenAi, &with_tools(CHAT_2))).verdict, PlayedAnswer::Answer(1));
        assert_eq!(player.ask(&request(Vendor::Anthropic, TITLE)).verdict, PlayedAnswer::SideRequest);
        assert_eq!((player.requests(), player.drifted(), player.side_requests()), (5, 0, 3));
        assert!(player.report().contains("\"side_requests\":3"), "{}", player.report());
    }
}

#[test]
fn a_probe_uses_no_answer() {
    let mut player = player(MatchMode::Lenient);
    let probe = r#"{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}"#;
    assert_eq!(player.ask(&request(Vendor::Anthropic, probe)).verdict, PlayedAnswer::SideRequest);
    let probe = r#"{"model":"claude-x","max_output_tokens":1,"input":"quota"}"#;
    assert_eq!(player.ask(&request(Vendor::Responses, probe)).verdict, PlayedAnswer::SideRequest);
}

#[test]
fn a_changed_text_is_still_part_of_the_conversation() {
    let asked = |body: &str| player(MatchMode::Lenient).ask(&request(Vendor::OpenAi, body));
    let other = CHAT.replace("tide table", "bus stop");
    // Another text alone, with tools, with a form and the recorded text: each is a drift or an exact match.
    assert_eq!((asked(&other).verdict, asked(&other).count), (PlayedAnswer::Answer(0), 1));
    assert_eq!(asked(&with_tools(&TITLE.replace("output_config", "response_format"))).verdict, PlayedAnswer::Answer(0));
    let formed = CHAT.replacen('{', r#"{"response_format":{"type":"json_object"},"#, 1);
    assert_eq!((asked(&formed).verdict, asked(&formed).count), (PlayedAnswer::Answer(0), 0));
    assert_eq!(asked(&formed.replace("tide table", "bus stop")).verdict, PlayedAnswer::SideRequest);
}

#[test]
fn injected_text_causes_one_remark() {
    let note = |day: &str| format!("<system-reminder>\\nToday is {day}.\\n</system-reminder>");
    let line = format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"{}\"}}\n", note("Monday"));
    let tape = Tape::of(&all(&Steno, format!("{line}{SESSION}").as_bytes()).events, None);
    let mut player = CassettePlayer::new(tape, MatchMode::Strict);
    let with_day = |body: &str, day: &str| {
        let added = format!("\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}},", note(day));
        with_tools(&body.replace("\"messages\":[", &added))
    };
    let first = player.ask(&request(Vendor::OpenAi, &with_day(CHAT, "Tuesday")));
    assert_eq!((first.verdict, first.count, first.remarks), (PlayedAnswer::Answer(0), 0, vec![Remark::Asides]));
    let second = player.ask(&request(Vendor::OpenAi, &with_day(CHAT_2, "Tuesday")));
    assert_eq!((second.verdict, second.remarks), (PlayedAnswer::Answer(1), vec![]));
    let tape = Tape::of(&all(&Steno, format!("{line}{SESSION}").as_bytes()).events, None);
    let same = CassettePlayer::new(tape, MatchMode::Strict).ask(&request(Vendor::OpenAi, &with_day(CHAT, "Monday")));
    assert_eq!((same.verdict, same.remarks), (PlayedAnswer::Answer(0), vec![]));
}
