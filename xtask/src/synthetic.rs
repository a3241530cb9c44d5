//! A large session that nobody had: records in the shape of the largest real files, made from a counter. It must not
//! contain a word of anybody's transcript.

use std::io::{self, Write};

/// Writes turns until `size` bytes are out, and gives how many records that took.
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

/// One question, a thought, a call, its result, an answer.
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
