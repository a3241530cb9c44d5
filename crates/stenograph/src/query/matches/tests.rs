//! What queries find, and what they do not.

use super::*;
use crate::model::{Body, Content, Event, Input, Role};
use crate::query::{EntryBuilder, Today};
use crate::time::Time;

fn query(text: &str) -> Query {
    let today = Today { now: "2026-03-10T12:00:00Z".parse().unwrap(), zone: jiff::tz::TimeZone::UTC };
    Query::parse(text, &today).unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
}

fn answers(event: &Event<'_>, asked: &str) -> bool {
    let projects = ["git@example.org:team/Shop.git".to_owned(), "/home/me/shop".to_owned()];
    let sessions = ["0198-AB".to_owned()];
    let tags = ["Team/Api".to_owned(), "todo".to_owned()];
    let session = SessionFacts {
        agent: "some-agent",
        projects: &projects,
        sessions: &sessions,
        file_time: None,
        is_pinned: false,
        is_marked: true,
        tags: &tags,
    };
    query(asked).matches(&EntryBuilder::default().entry(event).unwrap(), &session)
}

fn said(text: &'static str) -> Event<'static> {
    let time = Time::iso("2026-03-09T08:00:00Z".into());
    Event { time, ..Event::new(Body::Message { role: Role::User, content: Content::text(text) }) }
}

#[track_caller]
fn finds(event: &Event<'_>, yes: &[&str], no: &[&str]) {
    yes.iter().for_each(|asked| assert!(answers(event, asked), "{asked} finds nothing"));
    no.iter().for_each(|asked| assert!(!answers(event, asked), "{asked} finds it"));
}

#[test]
fn words_and_phrases() {
    finds(
        &said("Call sort_by_field() in Parser.rs, then sort by name"),
        &[
            "sort",
            "SORT field",
            "sort_by_field",
            "\"by field in parser\"",
            "\"sort by name\"",
            "pars*",
            "\"sort by na\"*",
            "-quick",
            "quick OR name",
        ],
        &["sor", "\"field by\"", "\"by sort\"", "sort quick", "-sort", "\"sort by f\"", "fieldx*"],
    );
}

#[test]
fn near_words() {
    finds(
        &said("the serializer fails"),
        &["serialiser~", "seralizer~1", "fials~1", "teh~"],
        &["serialiser", "srlizer~1", "xyz~"],
    );
}

#[test]
fn texts_without_spaces() {
    finds(
        &said("请修复解析器的bug，谢谢"),
        &["修复", "解析器", "的", "谢", "请修复解析器的bug", "器的 谢谢", "\"的bug谢\""],
        &["复修", "析解", "好", "解器", "的谢"],
    );
}

#[test]
fn a_phrase_does_not_reach_into_the_next_piece() {
    let call =
        Body::ToolCall { call: None, name: "Bash".into(), input: Input::Json(r#"{"a":"make test","b":"all"}"#.into()) };
    finds(&Event::new(call), &["\"make test\"", "test all bash"], &["\"test all\""]);
}

#[test]
fn fields_of_an_event() {
    let input = Input::Json(r#"{"file_path":"/w/src/main.rs"}"#.into());
    let body = Body::ToolCall { call: None, name: "read_file".into(), input };
    let event = Event { model: Some("fast-4-mini".into()), branch: Some("feat/find".into()), ..Event::new(body) };
    finds(
        &event,
        &[
            "tool:read",
            "tool:read_file",
            "tool:file",
            "tool:re*",
            "file:main.rs",
            "file:src/main",
            "file:src/*.rs",
            "model:fast-4",
            "model:4-mi*",
            "branch:feat",
            "branch:find",
            "is:call",
            "has:file",
            "has:tool",
            "role:assistant",
            "-is:error",
            "tool:edit,read",
        ],
        &[
            "tool:write",
            "tool:rea",
            "file:main.py",
            "model:fast-5",
            "branch:main",
            "is:result",
            "has:thinking",
            "role:user",
            "since:2020",
            "until:2030",
        ],
    );
}

#[test]
fn fields_of_time_and_session() {
    finds(
        &said("x"),
        &[
            "since:2026-03-09",
            "until:2026-03-09",
            "since:yesterday",
            "since:2d",
            "agent:Some",
            "project:SHOP",
            "project:team/shop",
            "project:=/home/me/Shop",
            "session:0198-ab",
            "session:0198",
            "role:user",
            "is:message",
        ],
        &[
            "until:2026-03-08",
            "since:today",
            "since:1d",
            "agent:other",
            "project:shops",
            "project:=sho",
            "session:ab",
            "-agent:some",
        ],
    );
}

#[test]
fn patterns_see_the_text_as_it_is() {
    finds(
        &said("Error: code 42\nnext line"),
        &["/code \\d+$/", "/^next/", "/ERROR/i", "/Error/ next"],
        &["/ERROR/", "/code.*next/", "-/42/"],
    );
}

#[test]
fn marks_of_the_session() {
    finds(
        &said("hello"),
        &[
            "tag:team/api",
            "tag:TODO",
            "tag:team/*",
            "tag:\"team/\"*",
            "tag:todo tag:team*",
            "tag:x,todo",
            "is:marked",
            "-is:pinned",
        ],
        &["tag:team", "tag:api", "tag:tod", "tag:todo tag:x", "is:pinned"],
    );
}

#[test]
fn a_text_about_a_session_is_found_by_its_words_and_not_as_an_event() {
    let entry = Entry::about_session("Check the flaky parser", Some(5));
    let finds = |asked: &str| query(asked).matches(&entry, &SessionFacts::default());
    assert!(["flaky", "\"flaky parser\"", "pars* -lexer", "/pars.r/"].into_iter().all(finds));
    assert!(
        !["lexer", "flaky role:user", "flaky is:error", "flaky tool:bash", "flaky is:pinned"].into_iter().any(finds)
    );
}
