//! The pictures of the viewer in the documentation: invented sessions of several agents and projects, on a real server. Without
//! `STENO_UPDATE=1` it only checks that the pages can be drawn.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::runner::Folder;
use crate::serve::Serving;

/// One session in the native format.
struct Script {
    session: String,
    cwd: String,
    branch: &'static str,
    model: &'static str,
    time_ms: i64,
    lines: Vec<String>,
    calls: u64,
    context: u64,
}

impl Script {
    fn new(number: u64, project: &str, branch: &'static str, model: &'static str, minutes_ago: i64) -> Script {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        Script {
            session: format!("0198f2c4-{number:04x}-7b3d-8e21-{:012x}", number * 7919),
            cwd: format!("/home/mira/{project}"),
            branch,
            model,
            time_ms: i64::try_from(now).unwrap() - minutes_ago * 60_000,
            lines: Vec::new(),
            calls: 0,
            context: 9_000,
        }
    }

    fn add(&mut self, seconds: i64, fields: &Value) {
        self.time_ms += seconds * 1000;
        let at = self.lines.len() + 1;
        let id = |at: usize| format!("3e9a{at:04x}-6b1d-4f8e-8a39-{}", &self.session[24..]);
        let mut event = json!({
            "v": 1, "time": Timestamp::from_millisecond(self.time_ms).unwrap().to_string(), "session": self.session,
            "id": id(at), "cwd": self.cwd, "branch": self.branch,
        });
        if at > 1 {
            event["parent"] = id(at - 1).into();
        }
        for (key, value) in fields.as_object().unwrap() {
            event[key] = value.clone();
        }
        self.lines.push(event.to_string());
    }

    fn usage(&mut self, output: u64) -> Value {
        self.context += 1_300 + output;
        json!({ "input": 180, "output": output, "cache_read": self.context, "cache_write": 1_300 })
    }

    fn ask(&mut self, text: &str) {
        self.add(40, &json!({ "kind": "message", "role": "user", "content": text }));
    }

    fn think(&mut self, text: &str) {
        self.add(4, &json!({ "kind": "thinking", "model": self.model, "content": text }));
    }

    fn say(&mut self, text: &str) {
        let usage = self.usage(220);
        self.add(
            6,
            &json!({ "kind": "message", "role": "assistant", "model": self.model, "content": text, "usage": usage }),
        );
    }

    fn call(&mut self, name: &str, input: &Value, result: &str, failed: bool) {
        self.calls += 1;
        let (call, usage) = (format!("toolu_{:03}", self.calls), self.usage(90));
        self.add(3, &json!({ "kind": "tool_call", "model": self.model, "name": name, "call": call, "input": input, "usage": usage }));
        self.add(5, &json!({ "kind": "tool_result", "name": name, "call": call, "content": result, "error": failed }));
    }

    fn command(&mut self, command: &str, result: &str, failed: bool) {
        self.call("Bash", &json!({ "command": command }), result, failed);
    }

    fn file(&mut self, name: &str) -> String {
        format!("{}/{name}", self.cwd)
    }

    fn title(&mut self, text: &str) {
        self.add(1, &json!({ "kind": "fact", "name": "title", "content": text }));
    }

    /// Writes the session as its agent would.
    fn save(&self, folder: &Folder, format: &str) {
        let text = self.lines.join("\n") + "\n";
        let path = match format {
            "claude-code" => format!("home/.claude/projects/{}/{}.jsonl", self.cwd.replace('/', "-"), self.session),
            _ => format!("home/.codex/sessions/2026/03/02/rollout-2026-03-02T09-14-05-{}.jsonl", self.session),
        };
        let path = folder.path(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        folder
            .run_with(&format!("convert - --from steno --to {format} -o {}", path.display()), text.as_bytes())
            .ends(0);
    }
}

/// Two agents fix the same test. They begin alike and go different ways.
fn leap_days(number: u64, model: &'static str, minutes_ago: i64, is_first: bool) -> Script {
    let mut script = Script::new(number, "almanac", "fix-leap-days", model, minutes_ago);
    script.ask("The test `leap_days` has been failing on main since yesterday. Can you find out why and fix it?");
    script.say("I will run the test first.");
    script.command(
        "cargo test leap_days",
        "running 1 test\ntest calendar::leap_days ... FAILED\n\nassertion `left == right` failed: 1900 is not a leap year\n  left: 29\n right: 28",
        true,
    );
    let calendar = script.file("src/calendar.rs");
    let source = "10\tpub fn days_in_february(year: i32) -> u32 {\n11\t    // Every fourth year is a leap year.\n12\t    if year % 4 == 0 { 29 } else { 28 }\n13\t}";
    script.call("Read", &json!({ "file_path": calendar }), source, false);
    let old = "year % 4 == 0";
    if is_first {
        script.think("The rule for century years is missing: 1900 is not a leap year, but 2000 is.");
        let new = "year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)";
        script.call("Edit", &json!({ "file_path": calendar, "old_string": old, "new_string": new }), "updated", false);
        script.command("cargo test", "test result: ok. 42 passed; 0 failed", false);
        script.say("Fixed. `days_in_february` treated every fourth year as a leap year; century years are leap years only if divisible by 400. All 42 tests pass.");
    } else {
        let new = "year % 4 == 0 && year % 100 != 0";
        script.call("Edit", &json!({ "file_path": calendar, "old_string": old, "new_string": new }), "updated", false);
        script.command(
            "cargo test",
            "test calendar::the_year_2000 ... FAILED\ntest result: FAILED. 41 passed; 1 failed",
            true,
        );
        script.say("The year 2000 is a leap year: it is divisible by 400. I will correct the condition.");
        let newer = "year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)";
        script.call(
            "Edit",
            &json!({ "file_path": calendar, "old_string": new, "new_string": newer }),
            "updated",
            false,
        );
        script.command("cargo test", "test result: ok. 42 passed; 0 failed", false);
        script.say("Fixed. `days_in_february` treated every fourth year as a leap year; century years are leap years only if divisible by 400. My first attempt forgot the year 2000. All 42 tests pass.");
    }
    script.ask("Yes, commit it please.");
    script.command(
        "git commit -am 'calendar: the rule for century years'",
        "[fix-leap-days 4be91d7] calendar: the rule for century years",
        false,
    );
    script.say("Committed as `4be91d7` on `fix-leap-days`.");
    script.title(if is_first { "Fix the leap day test" } else { "Find out why leap_days fails" });
    script
}

/// A long session with a plan, failures and a compaction.
fn tide_tables() -> Script {
    let mut script = Script::new(1, "harbour", "tide-tables", "claude-opus-4-5", 190);
    script
        .ask("Add tide tables to the harbour page: high and low water for the next seven days, from the tide service.");
    script.think("First look at how the page gets its weather, the tables can work the same way.");
    script.say("I will look at how the page reads the weather, then plan the work.");
    let (page, service) = (script.file("src/page.ts"), script.file("src/tides.ts"));
    script.command(
        "rg -n 'weather' src",
        "src/page.ts:14: const weather = await readWeather(port)\nsrc/weather.ts:3: export async function readWeather",
        false,
    );
    script.call(
        "Read",
        &json!({ "file_path": page }),
        "12\texport async function page(port: Port) {\n14\t  const weather = await readWeather(port)\n19\t}",
        false,
    );
    let todo = |status: [&str; 4]| {
        let names = [
            "Read the tide service",
            "Show a table per day",
            "Test the table at the turn of the year",
            "Document the setting",
        ];
        let items: Vec<Value> = names
            .iter()
            .zip(status)
            .map(|(name, status)| json!({ "content": name, "status": status, "activeForm": name }))
            .collect();
        json!({ "todos": items })
    };
    script.call("TodoWrite", &todo(["in_progress", "pending", "pending", "pending"]), "ok", false);
    script.call("Write", &json!({ "file_path": service, "content": "export interface Tide { at: Date, height: number, kind: \"high\" | \"low\" }\n\nexport async function readTides(port: Port): Promise<Tide[]> {\n  const answer = await fetch(`/tides/${port.id}?days=7`)\n  return (await answer.json()).tides\n}\n" }), "created", false);
    script.command("npm test", "FAIL src/tides.test.ts\n  ✗ times are in the zone of the port\n    expected 04:12, received 03:12\n\n1 failed, 31 passed", true);
    script.think("The service answers in UTC. The port knows its zone.");
    script.call("Edit", &json!({ "file_path": service, "old_string": "  return (await answer.json()).tides\n", "new_string": "  const { tides } = await answer.json()\n  return tides.map((tide) => ({ ...tide, at: inZone(tide.at, port.zone) }))\n" }), "updated", false);
    script.command("npm test", "32 passed", false);
    script.call("TodoWrite", &todo(["completed", "in_progress", "pending", "pending"]), "ok", false);
    script.say("The service is read, in the zone of the port. Now the table:\n\n| day | high | low |\n|---|---|---|\n| Mon | 04:12 · 16:40 | 10:21 · 22:58 |\n\nEach day is one row.");
    for (_, task) in SUB_AGENTS {
        script.call(
            "Task",
            &json!({ "description": task, "prompt": task, "subagent_type": "general-purpose" }),
            "done",
            false,
        );
    }
    for (at, name) in ["table.ts", "table.css", "page.ts", "ports.json"].iter().enumerate() {
        let path = script.file(&format!("src/{name}"));
        script.call(
            "Edit",
            &json!({ "file_path": path, "old_string": "old", "new_string": format!("new {at}") }),
            "updated",
            false,
        );
    }
    script.add(30, &json!({ "kind": "compaction", "content": "The user wants tide tables for seven days. The service is read in the zone of the port (src/tides.ts), and a table per day is drawn (src/table.ts). Open: a test at the turn of the year, and the documentation." }));
    script.ask("Good. Please also test the turn of the year.");
    script.command("npm test -- turn-of-the-year", "1 failed, 32 passed", true);
    script.command("npm test -- turn-of-the-year", "33 passed", false);
    script.call("TodoWrite", &todo(["completed", "completed", "completed", "in_progress"]), "ok", false);
    script.say("The last day of the year had no second high water, because the service starts a new page there. I read the next page too; all 33 tests pass.");
    script.title("Add tide tables to the harbour page");
    script
}

/// The sub-agents of the long session, and their tasks.
const SUB_AGENTS: [(&str, &str); 2] =
    [("charts", "Find all pages that show a chart"), ("ports", "List the ports without a time zone")];

/// The conversations of the sub-agents, in files of their own.
fn save_sub_agents(folder: &Folder, parent: &Script) {
    for ((agent, task), minutes_ago) in SUB_AGENTS.into_iter().zip([188, 187]) {
        let mut script = Script::new(1, "harbour", parent.branch, parent.model, minutes_ago);
        script.ask(task);
        for at in 0..6 {
            script.call("Grep", &json!({ "pattern": format!("{agent} {at}") }), "3 matches", at == 4);
        }
        script.say("Three of them, listed above.");
        let path = format!("home/.claude/projects/-home-mira-harbour/{}/subagents/agent-{agent}.jsonl", script.session);
        std::fs::create_dir_all(folder.path(&path).parent().unwrap()).unwrap();
        let text = script.lines.join("\n") + "\n";
        let converted = folder.run_with("convert - --from steno --to claude-code", text.as_bytes());
        let side = |line: &str| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["isSidechain"] = true.into();
            record["agentId"] = agent.into();
            record.to_string() + "\n"
        };
        folder.write(&path, converted.ends(0).text().lines().map(side).collect::<String>());
    }
}

/// A short session.
fn short(number: u64, project: &str, model: &'static str, minutes_ago: i64, title: &str, turns: u64) -> Script {
    let mut script = Script::new(number, project, "main", model, minutes_ago);
    script.ask(title);
    for turn in 0..turns {
        script.command("rg -n TODO src", "src/lamp.rs:12: // TODO: the second lamp", turn % 4 == 3);
        let path = script.file(&format!("src/part{turn}.rs"));
        script.call("Edit", &json!({ "file_path": path, "old_string": "one", "new_string": "two" }), "updated", false);
        script.say("One part is done; I will go on with the next one.");
    }
    script.say("Done. All tests pass.");
    script.title(title);
    script
}

#[test]
fn the_viewer_has_pictures() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let (opus, sonnet, gpt) = ("claude-opus-4-5", "claude-sonnet-4-5", "gpt-5-codex");
    let tides = tide_tables();
    tides.save(&folder, "claude-code");
    save_sub_agents(&folder, &tides);
    let (one, other) = (leap_days(2, sonnet, 1_500, true), leap_days(3, gpt, 1_440, false));
    one.save(&folder, "claude-code");
    other.save(&folder, "codex");
    let day = 24 * 60;
    let shorts = [
        ("lighthouse", gpt, 45, "Turn the lamp off at sunrise", 3, "codex"),
        ("harbour", opus, 300, "Why does the ferry timetable skip Sundays?", 5, "claude-code"),
        ("lighthouse", sonnet, 2 * day, "Replace the lens controller with the new driver", 9, "claude-code"),
        ("almanac", gpt, 3 * day, "Print the moon phases for a whole year", 6, "codex"),
        ("harbour", opus, 4 * day, "Move the berth plan to the new database", 14, "claude-code"),
        ("weather", sonnet, 5 * day, "Warn about storms two hours earlier", 7, "claude-code"),
        ("almanac", sonnet, 7 * day, "Explain the difference between civil and nautical twilight", 2, "claude-code"),
        ("weather", gpt, 8 * day, "The barometer chart is upside down on phones", 8, "codex"),
        ("lighthouse", opus, 10 * day, "Design the fog horn schedule", 11, "claude-code"),
        ("harbour", gpt, 12 * day, "Upgrade the booking form to the new style guide", 6, "codex"),
        ("weather", opus, 15 * day, "Cache the radar images for offline use", 10, "claude-code"),
        ("almanac", gpt, 19 * day, "Add sunrise times for the southern hemisphere", 5, "codex"),
    ];
    for (number, (project, model, minutes, title, turns, format)) in (10..).zip(shorts) {
        short(number, project, model, minutes, title, turns).save(&folder, format);
    }
    let server = Serving::of(folder, "");
    let weeks = server.get("/usage?by=week").body;
    assert!(
        weeks.contains("<a href=\"/sessions?q=since%3A") && weeks.contains("%20until%3A"),
        "a bar leads to its sessions"
    );
    let names = [&tides.session, &one.session, &other.session].map(String::as_str);
    browser.run("viewer_pictures.mjs", &[&server.link, names[0], names[1], names[2]]);
}
