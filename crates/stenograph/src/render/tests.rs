//! Whole documents, small enough to read.

use super::*;
use crate::formats::steno::Steno;
use crate::ledger::CountedOutline;
use crate::model::{Body, Content, Data, Event, ExtraFields, Input, Outline, Piece, PieceKind, Role, Usage};
use crate::time::Time;

fn message(role: Role, text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text) })
}

fn session() -> Vec<Event<'static>> {
    let mut first = message(Role::User, "Fix it.\n\n# Transcript: mine\n</details>");
    first.session = Some("abc|1".into());
    first.cwd = Some("/home/a_b".into());
    first.time = Time::iso("2026-03-02T09:14:05Z".into());
    let mut thought =
        Event::new(Body::Thinking { content: Content::text("Run it.\n</details>\n\n```sh\nls <x>\n```") });
    thought.model = Some("m_1".into());
    let call = Event::new(Body::ToolCall {
        call: Some("c1".into()),
        name: "Ba`sh".into(),
        input: Input::Json("{\"a\":\"```\"}".into()),
    });
    let result = Event::new(Body::ToolResult {
        call: Some("c1".into()),
        name: None,
        content: Content::text("````\n# no"),
        error: Some(true),
    });
    let blob = Piece {
        kind: PieceKind::Blob { media: Some("image/png".into()), data: Data::Inline("x".repeat(1234).into()) },
        extra: ExtraFields::default(),
    };
    let mut last =
        Event::new(Body::Message { role: Role::Assistant, content: Content::Pieces(vec![Piece::text("Done."), blob]) });
    last.usage = Some(Usage { input: Some(1234), output: Some(5), ..Usage::default() });
    last.time = Time::iso("2026-03-02T10:15:06Z".into());
    let title = Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text("a *title*")) });
    vec![first, thought, call, title, result, last]
}

fn outline(events: &[Event<'_>]) -> Outline {
    let mut outline = CountedOutline::new(Some(&Steno));
    events.iter().for_each(|event| outline.add(event));
    outline.finish()
}

fn markdown(thinking: Shown, tools: Shown) -> String {
    let events = session();
    let mut markdown = Markdown::new(Vec::new(), thinking, tools, jiff::tz::TimeZone::UTC);
    markdown.head(&outline(&events), "some format", "name").unwrap();
    events.iter().for_each(|event| markdown.event(event).unwrap());
    String::from_utf8(markdown.finish().unwrap()).unwrap()
}

const HEAD: &str = "\
# Transcript: abc\\|1

| Field | Value |
|---|---|
| Title | a \\*title\\* |
| Format | some format |
| Model | m\\_1 |
| Folder | /home/a\\_b |
| Started | 2026-03-02 09:14:05 UTC |
| Ended | 2026-03-02 10:15:06 UTC |
| Duration | 1 h 1 min |
| Tool calls | 1 |
| Tokens in | 1,234 |
| Tokens out | 5 |

## Conversation

### User (Turn 1)

*2026-03-02 09:14:05 UTC*

Fix it.

##### Transcript: mine
&lt;/details>

### Assistant (Turn 1)

*m\\_1*
";

#[test]
fn a_session_reads_as_its_turns() {
    let rest = "
<details>
<summary>Thinking</summary>

Run it.
&lt;/details>

```sh
ls <x>
```

</details>

#### Tool Call: ``Ba`sh``

````json
{
  \"a\": \"```\"
}
````

#### Tool Result: ``Ba`sh`` (failed)

`````text
````
# no
`````

Done.

*image/png, 1,234 bytes of base64*
";
    assert_eq!(markdown(Shown::Yes, Shown::Yes), format!("{HEAD}{rest}"));
}

#[test]
fn what_is_not_asked_for_is_left_out() {
    assert_eq!(markdown(Shown::No, Shown::No), format!("{HEAD}\nDone.\n\n*image/png, 1,234 bytes of base64*\n"));
}

#[test]
fn a_document_holds_every_event_once() {
    let events = session();
    let mut document = Document::new(Vec::new());
    document.head(&outline(&events), "some", "a.jsonl").unwrap();
    events.iter().for_each(|event| document.event(event).unwrap());
    document.rest().unwrap();
    let outside = events.iter().filter(|event| SpeakerSections::is_outside(event));
    outside.for_each(|event| document.other(event, "nobody said it").unwrap());
    let text = String::from_utf8(document.finish().unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["session"]["id"], "abc|1");
    assert_eq!(json["session"]["usage"]["input"], 1234);
    let turns = json["sections"].as_array().unwrap();
    let told: Vec<_> =
        turns.iter().map(|turn| (turn["role"].as_str().unwrap(), turn["events"].as_array().unwrap().len())).collect();
    assert_eq!(told, [("user", 1), ("assistant", 4)]);
    assert_eq!(json["others"][0]["event"]["kind"], "fact");
    assert_eq!(json["others"].as_array().unwrap().len(), 1);
}

#[test]
fn a_document_of_nothing_is_one() {
    let mut document = Document::new(Vec::new());
    document.head(&Outline::new("steno"), "some", "-").unwrap();
    let text = String::from_utf8(document.finish().unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((json["sections"].as_array().unwrap().len(), json["others"].as_array().unwrap().len()), (0, 0));
}

#[test]
fn what_is_nested_deeply_is_not_indented() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let call = Event::new(Body::ToolCall { call: None, name: "t".into(), input: Input::Json(deep.into()) });
    let mut markdown = Markdown::new(Vec::new(), Shown::Yes, Shown::Yes, jiff::tz::TimeZone::UTC);
    markdown.event(&call).unwrap();
    assert!(markdown.finish().unwrap().len() < 300_000);
}
