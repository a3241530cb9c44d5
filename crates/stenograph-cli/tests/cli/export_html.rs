//! `steno export --to html`: pages as files, and in a real browser.

use std::fmt::Write as _;
use std::fs;

use crate::browser::Browser;
use crate::runner::{Folder, NATIVE};

/// The conversation that `steno demo` writes.
const DEMO: &str = include_str!("../../../stenograph/src/formats/claude_code/fixtures/demo.jsonl");

fn page(folder: &Folder, name: &str) -> String {
    folder.path(name).display().to_string()
}

#[test]
fn a_page_is_one_file_that_names_nothing_else() {
    let folder = Folder::with("a.jsonl", DEMO);
    let done = folder.run("export a.jsonl --to html -o a.html");
    assert_eq!(done.ends(0).talk, "");
    assert_eq!(folder.names(), ["a.html", "a.jsonl"]);
    let html = String::from_utf8(folder.read("a.html")).unwrap();
    assert!(html.contains("<h1>Fix the leap day test</h1>"), "{html}");
    assert!(!html.contains("src=\"http") && !html.contains("<link"));
    assert!(!html.contains("details class=\"raw\""));
    let piped = folder.run_with("export - --to html", DEMO.as_bytes());
    assert!(piped.ends(0).text().contains("<article class=\"event user\" id=\"e1\">"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("a.html"), mode("a.jsonl"));
    }
    folder.run("export a.jsonl --to html -o a.html").fails("a.html");
    folder.run("export a.jsonl --to html -o a.html --force --raw").ends(0);
    let html = String::from_utf8(folder.read("a.html")).unwrap();
    assert!(
        html.contains("details class=\"raw\"") && html.contains("&quot;kind&quot;: &quot;tool_call&quot;"),
        "{html}"
    );
}

#[test]
fn a_page_links_to_every_event_that_show_numbers() {
    let folder = Folder::with("a.jsonl", NATIVE);
    let html = folder.run("export a.jsonl --to html");
    for number in 1..=4 {
        html.ends(0).says(&format!(" id=\"e{number}\""));
    }
}

#[test]
fn several_sessions_need_html_and_a_folder() {
    let folder = Folder::with("a.jsonl", NATIVE);
    folder.write("b.jsonl", DEMO);
    folder.run("export a.jsonl b.jsonl --to markdown").fails("only --to html takes several sessions");
    folder.run("export a.jsonl b.jsonl --to html").fails("several sessions need a folder");
    folder.run("export a.jsonl --to json --raw").fails("--raw requires --to html");
    folder.run("export a.jsonl b.jsonl --to html -o pages").ends(0).talks("2 sessions");
    let names = crate::runner::names(&folder.path("pages"));
    assert_eq!(names, ["a.html", "a.words.js", "b.html", "b.words.js", "index.html"]);
    if let Some(browser) = Browser::find() {
        browser.run("page.mjs", &["index", &page(&folder, "pages/index.html")]);
    }
}

#[test]
fn the_sessions_of_a_project_become_a_folder() {
    let folder = Folder::new();
    let project = "home/.claude/projects/-home-mira-almanac";
    fs::create_dir_all(folder.path(project)).unwrap();
    folder.write(&format!("{project}/8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10.jsonl"), DEMO);
    folder.run("index").ends(0);
    folder.run("export --project almanac --to html -o pages").ends(0).talks("1 session");
    assert!(String::from_utf8(folder.read("pages/index.html")).unwrap().contains("Fix the leap day test"));
    folder.run("export --project nowhere --to html -o other").finds_nothing("no sessions");
}

#[test]
fn people_can_read_search_and_fold_a_page() {
    let folder = Folder::with("a.jsonl", DEMO);
    folder.run("export a.jsonl --to html -o a.html").ends(0);
    let Some(browser) = Browser::find() else { return };
    browser.run("page.mjs", &["page", &page(&folder, "a.html")]);
    browser.run("page.mjs", &["plain", &page(&folder, "a.html")]);
}

#[test]
fn hostile_text_neither_runs_nor_leaves_the_page() {
    // The records repeat every text, and a page of twice the size would be split.
    for (size, options) in [(10_000_000, ""), (100_000, "--raw")] {
        let folder = Folder::with("a.jsonl", hostile(size));
        folder.run(&format!("export a.jsonl --to html -o a.html {options}")).ends(0);
        let Some(browser) = Browser::find() else { return };
        browser.run("page.mjs", &["hostile", &page(&folder, "a.html")]);
    }
}

#[test]
fn a_large_session_is_split_into_files_that_load_when_needed() {
    let line = "The wheel turns once more, and the table of tides is written again. ";
    let mut text = String::new();
    for number in 0..12_000 {
        let _ = writeln!(
            text,
            r#"{{"v":1,"kind":"message","session":"s1","role":"user","content":"UsageQuery {number}"}}"#
        );
        let call = format!(r#""session":"s1","call":"call-{number:05}""#);
        let _ =
            writeln!(text, r#"{{"v":1,"kind":"tool_call",{call},"name":"Bash","input":{{"command":"make tides"}}}}"#);
        let _ = writeln!(text, r#"{{"v":1,"kind":"tool_result",{call},"content":"{line}"}}"#);
        let answer = format!("Answer {number}. {}", line.repeat(25));
        let _ = writeln!(text, r#"{{"v":1,"kind":"message","session":"s1","role":"assistant","content":"{answer}"}}"#);
    }
    text.push_str(r#"{"v":1,"kind":"message","session":"s1","role":"user","content":"Find the needle"}"#);
    let folder = Folder::with("a.jsonl", text);
    folder.run("export a.jsonl --to html").fails("larger than 20 MB");
    folder.run("export a.jsonl --to html -o a.html").ends(0).talks("files in a.files");
    assert_eq!(folder.names(), ["a.files", "a.html", "a.jsonl"]);
    assert!(folder.read("a.html").len() < 5_000_000);
    folder.run("export a.jsonl --to html -o a#1.html").ends(0);
    assert!(String::from_utf8_lossy(&folder.read("a#1.html")).contains("\"a%231.files/0000.js\""));
    let Some(browser) = Browser::find() else { return };
    browser.run("page.mjs", &["chunks", &page(&folder, "a.html")]);
}

/// A session of texts that attack a page, and one text of this size.
fn hostile(size: usize) -> String {
    let texts = [
        "<script>globalThis.attacked = 1</script><img src=x onerror=\"attacked=1\">",
        "</div></article></main><script>attacked=1</script><style>*{display:none}</style>",
        "<svg onload=attacked=1><animate onbegin=attacked=1 attributeName=x></svg><iframe srcdoc='<script>parent.attacked=1</script>'>",
        "[a](javascript:attacked=1) [b](data:text/html,<script>attacked=1</script>) [c](vbscript:x) ![d](https://127.0.0.1:9/x.png)",
        "[e]: javascript:attacked=1\n[e] <javascript:attacked=1> <a href=\"javascript:attacked=1\">f</a>",
        "\u{1b}]8;;javascript:attacked=1\u{1b}\\\\link\u{1b}]8;;\u{1b}\\\\ \u{1b}[31mred \u{1b}[2J\u{1b}]52;c;eA==\u{7} \u{9b}31m \u{90}x\u{9c}",
        "safe\u{202e}cod.exe\u{202c} zero\u{200b}width \u{feff}\u{2066}x\u{2069} nul\u{0} del\u{7f}",
        "```\"onmouseover=attacked=1 <b>\ncode\n```\n~~~html\n<script>attacked=1</script>\n~~~",
        "<base href=\"https://127.0.0.1:9/\"><meta http-equiv=refresh content=\"0;url=https://127.0.0.1:9/\"><link rel=stylesheet href=//127.0.0.1:9/x>",
        "&lt;script&gt; &#60;script&#62; \\u003cscript\\u003e %3Cscript%3E",
        "The needle is here",
    ];
    let mut texts: Vec<String> = texts.map(str::to_owned).to_vec();
    texts.push("> ".repeat(3_000) + "deep");
    texts.push("* ".repeat(3_000) + "deep");
    texts.push("[".repeat(20_000) + &"]".repeat(20_000));
    texts.push("*a_`".repeat(30_000));
    texts.push(format!(
        "|{}\n|{}\n{}",
        "a|".repeat(200),
        "-|".repeat(200),
        format!("|{}\n", "b|".repeat(200)).repeat(50)
    ));
    texts.push("x".repeat(size));
    let mut out = String::new();
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    for (number, text) in texts.iter().enumerate() {
        let text = quoted(text);
        let role = ["user", "assistant"][number % 2];
        let _ = writeln!(out, r#"{{"v":1,"kind":"message","session":"s1","role":"{role}","content":{text}}}"#);
        if number < 11 && number != 10 {
            let id = format!("call-{number:04}");
            let name = quoted(&format!("Tool{}", &texts[number]));
            let _ = writeln!(
                out,
                r#"{{"v":1,"kind":"tool_call","call":"{id}","name":{name},"input":{{"command":{text},"file_path":{text}}}}}"#
            );
            let _ = writeln!(out, r#"{{"v":1,"kind":"tool_result","call":"{id}","content":{text},"error":true}}"#);
            let _ = writeln!(out, r#"{{"v":1,"kind":"thinking","content":{text}}}"#);
            let _ = writeln!(out, r#"{{"v":1,"kind":"failure","name":{text},"content":{text}}}"#);
            let _ = writeln!(out, r#"{{"v":1,"kind":"compaction","content":{text}}}"#);
        }
    }
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for (media, data) in [("image/png", pixel), ("image/svg+xml", "PHN2Zy8+"), ("image/png", "\" onerror=\"attacked=1")]
    {
        let (media, data) = (quoted(media), quoted(data));
        let _ = writeln!(
            out,
            r#"{{"v":1,"kind":"message","session":"s1","role":"user","content":[{{"media":{media},"data":{data}}}]}}"#
        );
    }
    out
}
