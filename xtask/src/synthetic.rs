//! Synthetic large sessions: records in the shape of the largest real files, generated from a counter. They must not contain
//! text of real transcripts.

use std::io::{self, Write};

/// Writes turns until `size` bytes are written, and returns the number of records.
pub fn session(size: u64, out: &mut dyn Write) -> io::Result<u64> {
    let (mut written, mut records, mut parent) = (0, 0, "null".to_owned());
    while written < size {
        for record in turn(records) {
            let id = format!("\"{records:08x}-0000-4000-8000-{records:012x}\"");
            let seconds = records % 86_400;
            let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let line = format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/ada/engine\",\
                 \"sessionId\":\"5e551000-0000-4000-8000-000000000000\",\"version\":\"2.1.0\",\"gitBranch\":\"main\",\
                 {record},\"uuid\":{id},\"timestamp\":\"2026-01-{:02}T{hours:02}:{minutes:02}:{rest:02}.{:03}Z\"}}\n",
                1 + records / 86_400 % 28,
                records % 1000,
            );
            out.write_all(line.as_bytes())?;
            written += line.len() as u64;
            records += 1;
            parent = id;
        }
    }
    Ok(records)
}

/// The id and the text of a session of one turn. Each number has its own ids, or the records would count as copies of each other.
pub fn small_session(number: u64) -> io::Result<(String, String)> {
    let mut one = Vec::new();
    session(1, &mut one)?;
    let id = format!("{number:08x}-1111-4000-8000-{number:012x}");
    let text = String::from_utf8_lossy(&one)
        .replace("5e551000-0000-4000-8000-000000000000", &id)
        .replace("-0000-4000-8000-", &format!("-{:04x}-4000-8000-", number % 65_536))
        .replace("wheel", &format!("wheel {number}"));
    Ok((id, text))
}

/// One turn: a question, thinking, a call, its result, an answer.
fn turn(number: u64) -> [String; 5] {
    let usage = format!(
        "\"usage\":{{\"input_tokens\":{},\"cache_creation_input_tokens\":{},\"cache_read_input_tokens\":{},\
         \"output_tokens\":{},\"service_tier\":\"standard\"}}",
        number % 97,
        number % 3001,
        number % 100_003,
        number % 811
    );
    let assistant = |step: u64, block: &str| {
        format!(
            "\"type\":\"assistant\",\"requestId\":\"req_{number:012x}\",\"message\":{{\"id\":\"msg_{:016x}\",\
             \"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{block}],\
             \"stop_reason\":null,\"stop_sequence\":null,{usage}}}",
            number + step / 3
        )
    };
    let listing: String = (0..60)
        .map(|line| format!("{line:>5}\\tlet value_{} = wheel(\\\"{}\\\");\\n", number + line, line * 7))
        .collect();
    let call = format!("toolu_{number:020x}");
    [
        format!(
            "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"Turn the wheel number {number} and say what \
             it prints.\\nThen stop.\"}}"
        ),
        assistant(
            0,
            &format!(
                "{{\"type\":\"thinking\",\"thinking\":\"The wheel {number} has a lever. {}\",\"signature\":\"c3ludGhldGlj\"}}",
                "It turns. ".repeat(20)
            ),
        ),
        assistant(
            1,
            &format!(
                "{{\"type\":\"tool_use\",\"id\":\"{call}\",\"name\":\"Read\",\"input\":{{\"file_path\":\"/home/ada/engine/wheel_{number}.rs\"}}}}"
            ),
        ),
        format!(
            "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"{call}\",\
             \"type\":\"tool_result\",\"content\":\"{listing}\"}}]}},\"toolUseResult\":{{\"type\":\"text\",\"file\":\
             {{\"filePath\":\"/home/ada/engine/wheel_{number}.rs\",\"content\":\"{listing}\",\"numLines\":60}}}}"
        ),
        assistant(
            3,
            &format!("{{\"type\":\"text\",\"text\":\"It prints {number}. {}\"}}", "Nothing else moved. ".repeat(12)),
        ),
    ]
}

/// A line that can be added to such a session.
pub fn line() -> String {
    "{\"parentUuid\":null,\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/ada/engine\",\
     \"sessionId\":\"5e551000-0000-4000-8000-000000000000\",\"version\":\"2.1.0\",\"gitBranch\":\"main\",\"type\":\"user\",\
     \"message\":{\"role\":\"user\",\"content\":\"Turn it once more.\"},\"uuid\":\"5e551000-0000-4000-8001-000000000000\",\
     \"timestamp\":\"2026-01-29T00:00:00.000Z\"}\n"
        .to_owned()
}

/// Writes turns of a Codex session until `size` bytes are written, and returns the number of records.
pub fn codex(size: u64, out: &mut dyn Write) -> io::Result<u64> {
    let (mut written, mut records) = (0, 0);
    let mut put = |records: u64, kind: &str, payload: &str| {
        let line = codex_record(records, kind, payload);
        written += line.len() as u64;
        out.write_all(line.as_bytes()).map(|()| written)
    };
    let head = "{\"id\":\"5e551000-0000-4000-8000-000000000001\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/home/ada/engine\",\
                \"originator\":\"codex_cli_rs\",\"cli_version\":\"0.60.0\",\"source\":\"cli\",\"git\":{\"branch\":\"main\"}}";
    let mut total = put(0, "session_meta", head)?;
    while total < size {
        for (kind, payload) in codex_turn(records) {
            records += 1;
            total = put(records, kind, &payload)?;
        }
    }
    Ok(records + 1)
}

/// A line that can be added to such a session.
pub fn codex_line() -> String {
    codex_record(28 * 86_400, "event_msg", "{\"type\":\"agent_message\",\"message\":\"It turned once more.\"}")
}

fn codex_record(number: u64, kind: &str, payload: &str) -> String {
    let seconds = number % 86_400;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (day, millis) = (1 + number / 86_400 % 28, number % 1000);
    format!(
        "{{\"timestamp\":\"2026-01-{day:02}T{hours:02}:{minutes:02}:{rest:02}.{millis:03}Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
    )
}

/// One turn: a question, thinking, a call, its result, an answer, and the token usage.
fn codex_turn(number: u64) -> Vec<(&'static str, String)> {
    let listing: String = (0..60)
        .map(|line| format!("{line:>5}\\tlet value_{} = wheel(\\\"{}\\\");\\n", number + line, line * 7))
        .collect();
    let question = format!("Turn the wheel number {number} and say what it prints.\\nThen stop.");
    let answer = format!("It prints {number}. {}", "Nothing else moved. ".repeat(12));
    let (call, moved) = (format!("call_{number:020x}"), "It turns. ".repeat(20));
    let usage = format!(
        "{{\"input_tokens\":{},\"cached_input_tokens\":{},\"output_tokens\":{},\"reasoning_output_tokens\":3,\"total_tokens\":{}}}",
        1 + number % 97,
        number % 11,
        1 + number % 811,
        2 + number % 97 + number % 811
    );
    let item = "response_item";
    vec![
        (
            "turn_context",
            "{\"cwd\":\"/home/ada/engine\",\"approval_policy\":\"on-request\",\"sandbox_policy\":{\"type\":\"read-only\"},\
             \"model\":\"gpt-5-codex\",\"summary\":\"auto\"}"
                .to_owned(),
        ),
        (item, format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{question}\"}}]}}")),
        ("event_msg", format!("{{\"type\":\"user_message\",\"message\":\"{question}\",\"images\":[]}}")),
        (
            item,
            format!(
                "{{\"type\":\"reasoning\",\"summary\":[{{\"type\":\"summary_text\",\"text\":\"The wheel {number} has a lever. {moved}\"}}],\
                 \"encrypted_content\":null}}"
            ),
        ),
        (
            item,
            format!(
                "{{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{{\\\"command\\\":[\\\"cat\\\",\\\"wheel_{number}.rs\\\"]}}\",\
                 \"call_id\":\"{call}\"}}"
            ),
        ),
        (item, format!("{{\"type\":\"function_call_output\",\"call_id\":\"{call}\",\"output\":\"{listing}\"}}")),
        (
            item,
            format!("{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"{answer}\"}}]}}"),
        ),
        ("event_msg", format!("{{\"type\":\"agent_message\",\"message\":\"{answer}\"}}")),
        (
            "event_msg",
            format!(
                "{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{usage},\"last_token_usage\":{usage},\"model_context_window\":272000}},\
                 \"rate_limits\":null}}"
            ),
        ),
    ]
}
