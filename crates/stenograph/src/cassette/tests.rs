//! Plays the fixtures of every format over the API of every vendor: a client that sends the recorded conversation does not drift, and an
//! answer can be read back.

use super::chat_item::in_comparison_order;
use super::*;
use crate::formats::FORMATS;
use crate::json::{Object, items};
use crate::read::all;
use crate::text::quote;

const VENDORS: [Vendor; 3] = [Vendor::OpenAi, Vendor::Responses, Vendor::Anthropic];

/// The tapes of all fixtures in which a model answers.
fn tapes() -> Vec<(String, Tape)> {
    let mut found = Vec::new();
    for format in FORMATS {
        let folder = format!("src/formats/{}/fixtures", format.info().name.replace('-', "_"));
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "golden" || ending == "losses") {
                continue;
            }
            let tape = Tape::of(&all(*format, &std::fs::read(&path).unwrap()).events, None);
            if !tape.answers().is_empty() {
                found.push((path.display().to_string(), tape));
            }
        }
    }
    assert!(found.len() > FORMATS.len(), "{} fixtures", found.len());
    found
}

/// A conversation as a client of this vendor sends it, with one message for each item.
fn body(vendor: Vendor, conversation: &[ChatItem], model: Option<&str>) -> String {
    let one = |item: &ChatItem| match (vendor, item) {
        (Vendor::OpenAi | Vendor::Responses, ChatItem::Message { role, text }) => {
            format!("{{\"role\":{},\"content\":{}}}", quote(role.name()), quote(text))
        }
        (Vendor::Anthropic, ChatItem::Message { role, text }) => {
            let block = format!("{{\"type\":\"text\",\"text\":{}}}", quote(text));
            format!("{{\"role\":{},\"content\":[{block}]}}", quote(role.name()))
        }
        (Vendor::OpenAi, ChatItem::Call { id, name, input }) => format!(
            "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":{},\"type\":\"function\",\"function\":{{\
             \"name\":{},\"arguments\":{}}}}}]}}",
            quote(id),
            quote(name),
            quote(&input.to_object())
        ),
        (Vendor::Responses, ChatItem::Call { id, name, input }) => format!(
            "{{\"type\":\"function_call\",\"call_id\":{},\"name\":{},\"arguments\":{}}}",
            quote(id),
            quote(name),
            quote(&input.to_object())
        ),
        (Vendor::Anthropic, ChatItem::Call { id, name, input }) => format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}}}]}}",
            quote(id),
            quote(name),
            input.to_object()
        ),
        (Vendor::OpenAi, ChatItem::Result { id, text }) => {
            format!("{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}", quote(id), quote(text))
        }
        (Vendor::Responses, ChatItem::Result { id, text }) => {
            format!("{{\"type\":\"function_call_output\",\"call_id\":{},\"output\":{}}}", quote(id), quote(text))
        }
        (Vendor::Anthropic, ChatItem::Result { id, text }) => format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":{},\"content\":{}}}]}}",
            quote(id),
            quote(text)
        ),
        (_, ChatItem::Thinking { .. }) => panic!("thoughts are not compared"),
    };
    let list: Vec<String> = conversation.iter().map(one).collect();
    let key = if vendor == Vendor::Responses { "input" } else { "messages" };
    let model = model.map_or_else(|| "null".to_owned(), quote);
    format!("{{\"model\":{model},\"{key}\":[{}]}}", list.join(","))
}

#[test]
fn the_recorded_conversation_does_not_drift() {
    for (name, tape) in tapes() {
        for vendor in VENDORS {
            let mut player = CassettePlayer::new(tape.clone(), MatchMode::Strict);
            for answer in tape.answers() {
                let body = body(vendor, tape.conversation(answer), answer.model.as_deref());
                let played = player.ask(&vendor.request(body.as_bytes()).unwrap());
                assert_eq!(played.news, vec![], "{name}, {vendor:?}, answer {}", answer.number);
            }
            assert!(player.is_at_end());
        }
    }
}

#[test]
fn a_client_sends_back_what_it_received() {
    for (name, tape) in tapes() {
        for answer in tape.answers() {
            let expected =
                in_comparison_order(answer.blocks.iter().map(|block| block.item.clone()).collect(), &mut Vec::new());
            for vendor in VENDORS {
                let whole = vendor.whole(answer, &Request::default());
                let object = Object::parse(&whole).unwrap();
                let messages = match vendor {
                    Vendor::OpenAi => {
                        let choice = items(object.peek("choices").unwrap()).unwrap()[0];
                        format!("{{\"messages\":[{}]}}", Object::parse(choice).unwrap().peek("message").unwrap())
                    }
                    Vendor::Responses => format!("{{\"input\":{}}}", object.peek("output").unwrap()),
                    Vendor::Anthropic => format!("{{\"messages\":[{whole}]}}"),
                };
                let back = vendor.request(messages.as_bytes()).unwrap();
                let texts =
                    |items: &[ChatItem]| items.iter().map(|item| (item.name(), item.text())).collect::<Vec<_>>();
                assert_eq!(texts(&back.conversation), texts(&expected), "{name}, {vendor:?}, answer {}", answer.number);
            }
        }
    }
}

#[test]
fn a_stream_has_the_text_of_the_whole_answer() {
    for (name, tape) in tapes() {
        for answer in tape.answers() {
            for vendor in VENDORS {
                let frames = vendor.frames(answer, &Request::default());
                let mut deltas = String::new();
                for frame in &frames {
                    assert!(frame.text.ends_with("\n\n") && !frame.text.trim_end().contains("\n\n"), "{}", frame.text);
                    let data = frame.text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
                    if let Some(object) = Object::parse(data) {
                        deltas += &text_of(vendor, &object).unwrap_or_default();
                    }
                }
                let expected_texts: Vec<&str> = answer
                    .blocks
                    .iter()
                    .filter_map(|block| match &block.item {
                        ChatItem::Message { text, .. } => Some(text.as_str()),
                        ChatItem::Thinking { .. } | ChatItem::Call { .. } | ChatItem::Result { .. } => None,
                    })
                    .collect();
                let gap = if vendor == Vendor::OpenAi { super::chat_item::GAP } else { "" };
                assert_eq!(deltas, expected_texts.join(gap), "{name}, {vendor:?}, answer {}", answer.number);
            }
        }
    }
}

/// The text in an event of a stream.
fn text_of(vendor: Vendor, object: &Object<'_>) -> Option<String> {
    let text = match vendor {
        Vendor::OpenAi => {
            let choice = Object::parse(items(object.peek("choices")?)?.first()?)?;
            Object::parse(choice.peek("delta")?)?.peek_str("content")
        }
        Vendor::Responses if object.peek_str("type")? == "response.output_text.delta" => object.peek_str("delta"),
        Vendor::Responses => None,
        Vendor::Anthropic => Object::parse(object.peek("delta")?)?.peek_str("text"),
    };
    text.map(String::from)
}
