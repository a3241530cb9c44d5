//! Writes the events of other formats with templates: one record for each message of the user, for each answer of the model and,
//! unless the answer has it, for each result. The records follow each other, because agents show the model only the records
//! from the last one back to the first. Events without a template are left out.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use super::answer::HeldAnswer;
use super::fill::filled;
use super::{RecordIds, RecordTemplates};
use crate::json::one_line;
use crate::model::{Body, Content, Event, Fact, Outline, Role, Usage, is_uuid};
use crate::synthesizer::Synthesizer;
use crate::text::quote;
use crate::write::WriterOutput;

/// Writes the records of another format's session.
#[derive(Clone, Debug)]
pub struct TemplateWriter {
    templates: &'static RecordTemplates,
    synthesizer: Synthesizer,
    session: String,
    /// The model of the last answer that states one.
    model: Option<String>,
    /// Whether the file has its header.
    has_header: bool,
    /// The id of the last record.
    last: Option<String>,
    /// The fingerprints of the ids of all records.
    ids: HashSet<u64>,
    answer: Option<HeldAnswer>,
    /// A token count that came before its answer, with the response that it names.
    early: Option<(Option<String>, Usage)>,
}

/// What a record says, beside the fields of its event.
#[derive(Default)]
struct RecordParts<'p> {
    content: Option<&'p Content<'p>>,
    answer: Option<&'p HeldAnswer>,
    results: &'p [Event<'static>],
}

impl TemplateWriter {
    /// A writer for a session. `name` is the format.
    pub fn new(templates: &'static RecordTemplates, outline: &Outline, name: &str) -> TemplateWriter {
        let synthesizer = Synthesizer::new(outline);
        TemplateWriter {
            templates,
            session: synthesizer.session(),
            synthesizer,
            model: outline.first_model.clone(),
            has_header: outline.origin == name,
            last: None,
            ids: HashSet::new(),
            answer: None,
            early: None,
        }
    }

    /// Registers a record that is written unchanged, so that later records follow it. Writes the answer that is held back.
    pub fn follow(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        self.release(out);
        self.has_header = true;
        for event in events {
            match &event.body {
                Body::ToolCall { call, name, .. } => drop(self.synthesizer.pairing.call(call.as_deref(), name)),
                Body::ToolResult { call, .. } => drop(self.synthesizer.pairing.result(call.as_deref())),
                _ => {}
            }
        }
        let Some(first) = events.first() else { return };
        self.synthesizer.time(first);
        if let Some(session) = &first.session {
            self.session = session.to_string();
        }
        self.remember_model(first);
        if let Some(id) = &first.id {
            self.ids.insert(xxh3_64(id.as_bytes()));
            self.last = Some(id.to_string());
        }
    }

    /// Writes the events of one record.
    pub fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events.iter().filter(|event| !event.restates) {
            if !self.event(event, out)
                && let Some(usage) = event.usage
            {
                // The next event of the response gets the usage of an event that has no place here.
                self.release(out);
                self.early = Some((event.group.as_deref().map(str::to_owned), usage));
            }
        }
    }

    /// Writes an event, or holds it back. `false` if it has no place here.
    fn event(&mut self, event: &Event<'_>, out: &mut WriterOutput) -> bool {
        let templates = self.templates;
        match &event.body {
            Body::Message { role: Role::Assistant, content } if templates.can_say(content) => {
                self.say(event, None, out);
            }
            Body::Thinking { content } if templates.can_think(content) => self.say(event, None, out),
            Body::ToolCall { call, name, .. } => {
                let call = self.synthesizer.pairing.call(call.as_deref(), name);
                self.say(event, Some(call), out);
            }
            Body::ToolResult { .. } => return self.result(event, out),
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } if templates.can_say(content) => {
                self.line(templates.user, event, content, out);
            }
            // Agents do not store their instructions, and would take others for a message of the user.
            Body::Message { .. } | Body::Thinking { .. } => return false,
            Body::Compaction { summary: Some(summary) } if templates.can_say(summary) => {
                if !templates.compaction.is_empty() {
                    self.line(templates.compaction, event, summary, out);
                }
                if !templates.compaction.contains("\"<text>\"") {
                    self.line(templates.user, event, summary, out);
                }
            }
            Body::Failure { content: Some(content), .. } if !templates.failure.is_empty() && !content.is_empty() => {
                self.line(templates.failure, event, content, out);
            }
            Body::Fact { fact: Fact::Title, content: Some(content) } if !templates.title.is_empty() => {
                self.line(templates.title, event, content, out);
            }
            Body::Fact { fact: Fact::Usage, .. } => return self.count(event),
            Body::Stop { reason: Some(reason), .. } => {
                if let Some(answer) = &mut self.answer {
                    answer.stop.get_or_insert_with(|| reason.to_string());
                }
                return event.usage.is_none();
            }
            Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Fact { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => return false,
        }
        true
    }

    /// Adds a token count to the answer of its response: the one before it, or else the next one.
    fn count(&mut self, event: &Event<'_>) -> bool {
        let group = event.group.as_deref();
        match self.answer.as_mut().filter(|answer| answer.awaits_count_of(group)) {
            Some(answer) => answer.usage = event.usage,
            None => self.early = event.usage.map(|usage| (group.map(str::to_owned), usage)),
        }
        true
    }

    /// Holds a part of an answer back, because the next event may belong to the same answer or state its token count.
    fn say(&mut self, event: &Event<'_>, call: Option<String>, out: &mut WriterOutput) {
        let mut event = event.clone().into_owned();
        event.time = Some(self.synthesizer.time(&event));
        if let (Body::ToolCall { call, .. }, Some(own)) = (&mut event.body, call) {
            *call = Some(own.into());
        }
        if !self.answer.as_ref().is_some_and(|answer| answer.takes(&event, self.templates)) {
            self.release(out);
        }
        let usage = event.usage.or_else(|| self.early_count(event.group.as_deref()));
        match &mut self.answer {
            Some(answer) => {
                answer.usage = answer.usage.or(usage);
                answer.events.push(event);
            }
            None => self.answer = Some(HeldAnswer { events: vec![event], results: Vec::new(), usage, stop: None }),
        }
    }

    fn early_count(&mut self, group: Option<&str>) -> Option<Usage> {
        let is_own = self.early.as_ref().is_some_and(|(of, _)| of.is_none() || of.as_deref() == group);
        if is_own { self.early.take().map(|(_, usage)| usage) } else { None }
    }

    /// Writes a result after the answer with its call, whose token count may come only after the result.
    fn result(&mut self, event: &Event<'_>, out: &mut WriterOutput) -> bool {
        let mut event = event.clone().into_owned();
        event.time = Some(self.synthesizer.time(&event));
        let Body::ToolResult { call, name, .. } = &mut event.body else { return false };
        let (paired, tool) = self.synthesizer.pairing.result(call.as_deref()).unzip();
        let id = call.as_deref().map(str::to_owned).or(paired).unwrap_or_else(|| self.synthesizer.pairing.orphan());
        *name = name.take().or(tool.map(Into::into));
        let templates = self.templates;
        let is_record = !templates.result.is_empty();
        let is_awaited = self.answer.as_ref().is_some_and(|answer| match is_record && templates.results.is_empty() {
            true => answer.usage.is_none(),
            false => answer.called(&id),
        });
        *call = Some(id.into());
        match &mut self.answer {
            Some(answer) if is_awaited && answer.has_room() => answer.results.push(event),
            _ if is_record => {
                self.release(out);
                self.results(&[event], out);
            }
            _ => return false,
        }
        true
    }

    /// Writes the answer that is held back, and the results after it.
    pub fn release(&mut self, out: &mut WriterOutput) {
        let Some(answer) = self.answer.take() else { return };
        let Some(first) = answer.events.first() else { return };
        // What follows the answer follows the last of its records in the source.
        let stated = answer.events.iter().rev().find_map(|event| event.id.as_deref());
        let id = self.new_id(stated.map(str::to_owned));
        answer.events.iter().for_each(|event| self.remember_model(event));
        let parts = RecordParts { answer: Some(&answer), ..RecordParts::default() };
        let templates = self.templates;
        let is_twice = !templates.answer_with_calls.is_empty() && answer.has_answered_calls();
        let says = answer.events.iter().any(|event| !matches!(event.body, Body::ToolCall { .. }));
        if says || templates.answer_with_calls.is_empty() {
            self.line_of(templates.answer, first, Some(&id), &parts, out);
        }
        if is_twice {
            self.line_of(templates.answer_with_calls, first, Some(&id), &parts, out);
        }
        if !templates.usage.is_empty() && answer.usage.is_some_and(|usage| usage_part("total", &usage).is_some()) {
            self.line_of(templates.usage, first, None, &parts, out);
        }
        if !templates.result.is_empty() {
            self.results(&answer.results, out);
        }
    }

    /// Writes results that are not in the record of their answer.
    fn results(&mut self, results: &[Event<'static>], out: &mut WriterOutput) {
        match (self.templates.results, results.first()) {
            (_, None) => {}
            ("", _) => {
                for result in results {
                    self.line_of(self.templates.result, result, None, &RecordParts::default(), out);
                }
            }
            (template, Some(first)) => {
                let parts = RecordParts { results, ..RecordParts::default() };
                self.line_of(template, first, None, &parts, out);
            }
        }
    }

    fn remember_model(&mut self, event: &Event<'_>) {
        if let Some(model) = event.model.as_deref() {
            self.model = Some(model.to_owned());
        }
    }

    /// This id, or another one if a record has it.
    fn new_id(&mut self, stated: Option<String>) -> String {
        let fits = |id: &String| match self.templates.ids {
            RecordIds::Any => !id.is_empty(),
            RecordIds::Uuids => is_uuid(id),
        };
        let mut id = stated.filter(fits).unwrap_or_else(|| self.synthesizer.uuid());
        while !self.ids.insert(xxh3_64(id.as_bytes())) {
            id = self.synthesizer.uuid();
        }
        id
    }

    /// Writes a record with this content.
    fn line(&mut self, template: &'static str, event: &Event<'_>, content: &Content<'_>, out: &mut WriterOutput) {
        self.release(out);
        let parts = RecordParts { content: Some(content), ..RecordParts::default() };
        self.line_of(template, event, None, &parts, out);
    }

    fn line_of(
        &mut self,
        template: &'static str,
        event: &Event<'_>,
        id: Option<&str>,
        parts: &RecordParts<'_>,
        out: &mut WriterOutput,
    ) {
        let time = self.synthesizer.time(event);
        let event = &Event { time: Some(time), ..event.clone() };
        if !std::mem::replace(&mut self.has_header, true) && !self.templates.header.is_empty() {
            let id = self.templates.header.contains("\"<id>\"").then(|| self.synthesizer.uuid());
            let header =
                filled(self.templates.header, &|name| self.field(name, event, id.as_deref().unwrap_or_default()));
            out.line(header);
            self.last = id;
        }
        let id = match id {
            Some(id) => id.to_owned(),
            None => {
                let stated = self.synthesizer.id(event);
                self.new_id(Some(stated))
            }
        };
        let record = filled(template, &|name| self.part(name, event, parts).or_else(|| self.field(name, event, &id)));
        out.line(record);
        if template.contains("\"<parent") {
            self.last = Some(id);
        }
    }

    /// A field of an event or its session.
    fn field(&self, name: &str, event: &Event<'_>, id: &str) -> Option<String> {
        let outline = self.synthesizer.outline();
        let stated = |own: &Option<std::borrow::Cow<'_, str>>, known: &Option<String>| {
            own.as_deref().or(known.as_deref()).filter(|word| !word.is_empty()).map(quote)
        };
        match name {
            "id" => Some(quote(id)),
            // Both records of one answer follow the same record.
            "parent" => self.last.as_deref().filter(|last| *last != id).map(quote),
            "last" => self.last.as_deref().map(quote),
            "session" => Some(quote(&self.session)),
            "group" => event.group.as_deref().map(quote),
            "cwd" => stated(&event.cwd, &outline.header.cwd),
            "version" => stated(&event.version, &outline.first_version),
            "branch" => stated(&event.branch, &outline.first_branch),
            "model" => self.model.as_deref().map(quote),
            "title" => outline.stated_title.as_deref().map(quote),
            "cwd digest" => Some(quote(&sha256(event.cwd.as_deref().or(outline.header.cwd.as_deref()).unwrap_or("/")))),
            "time" => event.time.as_ref().map(|time| quote(&time.to_iso_exact())),
            "millis" => event.time.as_ref().and_then(|time| Some(time.to_millis()?.to_string())),
            _ => None,
        }
    }

    /// A part of what a record says.
    fn part(&self, name: &str, event: &Event<'_>, parts: &RecordParts<'_>) -> Option<String> {
        if let Some(content) = parts.content {
            return match name {
                "text" => Some(content.joined().to_json()),
                "content" => Some(self.templates.content(content)),
                "name" => event.name().map(quote),
                _ => None,
            };
        }
        if name == "results" {
            let element = |result| filled(self.templates.result, &|name| self.call_part(name, result, None));
            let elements: Vec<String> = parts.results.iter().map(element).collect();
            return Some(format!("[{}]", elements.join(",")));
        }
        let Some(answer) = parts.answer else { return self.call_part(name, event, None) };
        let call = |event: &Event<'_>| {
            let result = answer.result_of(event.call());
            if result.is_none() && self.templates.result.is_empty() {
                return None;
            }
            let value = |name: &str| self.call_part(name, event, result).or_else(|| self.field(name, event, ""));
            Some(filled(self.templates.call, &value))
        };
        let of_kind = |is_kind: fn(&Body<'_>) -> bool| -> Option<String> {
            let events: Vec<Event<'_>> = answer.events.iter().filter(|event| is_kind(&event.body)).cloned().collect();
            (!events.is_empty()).then(|| self.templates.elements(&events, &call))
        };
        match name {
            "content" => Some(self.templates.elements(&answer.events, &call)),
            "thoughts" => of_kind(|body| matches!(body, Body::Thinking { .. })),
            "calls" => of_kind(|body| matches!(body, Body::ToolCall { .. })),
            "text" => text_of(answer, |body| matches!(body, Body::Message { .. })),
            "thought" => text_of(answer, |body| matches!(body, Body::Thinking { .. })),
            "stop" => answer.stop(self.templates).map(quote),
            name => usage_part(name, &answer.usage?),
        }
    }

    /// A field of a call, or of its result.
    fn call_part(&self, name: &str, event: &Event<'_>, result: Option<&Event<'_>>) -> Option<String> {
        if let Body::ToolCall { input, .. } = &event.body {
            match name {
                "arguments" => return Some(one_line(input.to_object()).into_owned()),
                "arguments text" => return Some(input.to_text().to_json()),
                _ => {}
            }
        }
        match name {
            "call" => return event.call().map(quote),
            "name" => return event.name().map(quote),
            _ => {}
        }
        let Body::ToolResult { content, error, .. } = &result.unwrap_or(event).body else { return None };
        let failed = *error == Some(true);
        match name {
            "error" => error.map(|error| error.to_string()),
            "success" => error.map(|error| (!error).to_string()),
            "result" => (!failed).then(|| content.joined().to_json()),
            "failure" => failed.then(|| content.joined().to_json()),
            "result text" => Some(content.joined().to_json()),
            "result content" => Some(self.templates.content(content)),
            _ => None,
        }
    }
}

/// The text of the first event of a kind.
fn text_of(answer: &HeldAnswer, is_kind: fn(&Body<'_>) -> bool) -> Option<String> {
    let event = answer.events.iter().find(|event| is_kind(&event.body));
    event.and_then(Event::content).map(|content| content.joined().to_json())
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A counter of a usage.
fn usage_part(name: &str, usage: &Usage) -> Option<String> {
    let sum = |counts: &[Option<u64>]| counts.iter().copied().flatten().reduce(u64::saturating_add);
    let all_input = sum(&[usage.input, usage.cache_read, usage.cache_write]);
    let count = match name {
        "input" => usage.input,
        "output" => usage.output,
        "cache read" => usage.cache_read,
        "cache write" => usage.cache_write,
        "reasoning" => usage.reasoning,
        "all input" => all_input,
        "visible output" => usage.output.map(|output| output.saturating_sub(usage.reasoning.unwrap_or(0))),
        "total" => sum(&[all_input, usage.output]),
        "cost" => return usage.cost.map(|cost| cost.to_string()),
        _ => None,
    };
    count.map(|count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Input, StopReason};

    const TEMPLATES: RecordTemplates = RecordTemplates {
        header: r#"{"k":"head","s":"<session>"}"#,
        user: r#"{"k":"user","t":"<content>"}"#,
        answer: r#"{"k":"answer","t":"<content>","u":{"out":"<output>","in":"<input|0>"},"stop":"<stop>"}"#,
        result: r#"{"k":"result","c":"<call>","n":"<name>","t":"<result text>"}"#,
        text: r#"{"t":"<text>"}"#,
        call: r#"{"c":"<call>","n":"<name>"}"#,
        stops: &[(StopReason::Continues, "tools"), (StopReason::Waiting, "done")],
        ..RecordTemplates::NONE
    };

    /// An answer is one object, and has its results.
    const ONE_OBJECT: RecordTemplates = RecordTemplates {
        user: r#"{"k":"user","t":"<text>"}"#,
        answer: r#"{"id":"<id>","t":"<text|>","u":{"out":"<output>"}}"#,
        answer_with_calls: r#"{"id":"<id>","t":"<text|>","calls":"<calls>","u":{"out":"<output>"}}"#,
        call: r#"{"c":"<call>","r":{"ok":"<result>","bad":"<failure>"}}"#,
        result: "",
        ..TEMPLATES
    };

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "ls".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: Option<&'static str>, error: bool) -> Event<'static> {
        let content = Content::text("found");
        Event::new(Body::ToolResult { call: id.map(Into::into), name: None, content, error: Some(error) })
    }

    fn tokens(output: u64) -> Option<Usage> {
        Some(Usage { output: Some(output), ..Usage::default() })
    }

    fn count(output: u64) -> Event<'static> {
        Event { usage: tokens(output), ..Event::new(Body::Fact { fact: Fact::Usage, content: None }) }
    }

    fn written(templates: &'static RecordTemplates, events: &[Event<'_>]) -> Vec<String> {
        let outline = Outline { session: Some("s".into()), ..Outline::of("", events) };
        let (mut writer, mut out) = (TemplateWriter::new(templates, &outline, "own"), WriterOutput::default());
        events.iter().for_each(|event| writer.record(std::slice::from_ref(event), &mut out));
        writer.release(&mut out);
        let records = out.take().into_iter().filter_map(|piece| match piece {
            crate::write::OutputPiece::Record(record) => Some(String::from_utf8(record).unwrap()),
            crate::write::OutputPiece::Glue(_) => None,
        });
        records.collect()
    }

    #[test]
    fn results_follow_their_answer_wherever_its_usage_is() {
        let of_response = |event: Event<'static>| Event { group: Some("1".into()), ..event };
        let said = Event { usage: tokens(7), ..of_response(message(Role::Assistant, "I look")) };
        let early = [message(Role::User, "go"), said, of_response(call("a")), result(Some("a"), false)];
        let late =
            [message(Role::User, "go"), message(Role::Assistant, "I look"), call("a"), result(None, false), count(7)];
        let expected = [
            r#"{"k":"head","s":"s"}"#,
            r#"{"k":"user","t":[{"t":"go"}]}"#,
            r#"{"k":"answer","t":[{"t":"I look"},{"c":"a","n":"ls"}],"u":{"out":7,"in":0},"stop":"tools"}"#,
            r#"{"k":"result","c":"a","n":"ls","t":"found"}"#,
        ];
        assert_eq!(written(&TEMPLATES, &early), expected);
        assert_eq!(written(&TEMPLATES, &late), expected);
    }

    /// The results of an answer are one record.
    const ONE_RECORD: RecordTemplates = RecordTemplates {
        result: r#"{"c":"<call>","t":"<result text>"}"#,
        results: r#"{"k":"results","r":"<results>"}"#,
        ..TEMPLATES
    };

    #[test]
    fn the_results_of_an_answer_are_in_one_record() {
        let events = [call("a"), call("b"), count(7), result(Some("b"), false), result(Some("a"), true), call("c")];
        let lines = written(&ONE_RECORD, &events);
        assert_eq!(lines.get(2).unwrap(), r#"{"k":"results","r":[{"c":"b","t":"found"},{"c":"a","t":"found"}]}"#);
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn an_agent_that_accepts_only_uuids_gets_uuids() {
        const UUIDS: RecordTemplates = RecordTemplates {
            user: r#"{"id":"<id>","p":"<parent|null>","t":"<content>"}"#,
            ids: RecordIds::Uuids,
            ..TEMPLATES
        };
        let uuid = "11111111-2222-4333-8444-555555555555";
        let named = |id: &'static str| Event { id: Some(id.into()), ..message(Role::User, "go") };
        let lines = written(&UUIDS, &[named(uuid), named("msg_1"), named(uuid)]);
        let field =
            |line: &String, key: &str| crate::json::Object::parse(line).unwrap().peek_str(key).unwrap().into_owned();
        let ids: Vec<String> = lines.iter().skip(1).map(|line| field(line, "id")).collect();
        assert!(ids.iter().all(|id| is_uuid(id)) && ids[0] == uuid && ids[1] != ids[2], "{ids:?}");
        assert_eq!(field(&lines[3], "p"), ids[1]);
    }

    #[test]
    fn an_answer_without_usage_states_none() {
        let lines = written(&TEMPLATES, &[message(Role::Assistant, "one"), message(Role::Assistant, "two"), count(3)]);
        assert_eq!(lines.get(1).unwrap(), r#"{"k":"answer","t":[{"t":"one"}],"stop":"done"}"#);
        assert_eq!(lines.get(2).unwrap(), r#"{"k":"answer","t":[{"t":"two"}],"u":{"out":3,"in":0},"stop":"done"}"#);
    }

    #[test]
    fn an_answer_with_its_results_is_written_twice_under_one_id() {
        let said = Event { id: Some("1".into()), ..message(Role::Assistant, "I look") };
        let (good, bad) = (result(Some("a"), false), result(Some("b"), true));
        let events = [said, call("a"), call("b"), good, bad, result(Some("x"), false), count(7)];
        let expected = [
            r#"{"id":"1","t":"I look","u":{"out":7}}"#,
            r#"{"id":"1","t":"I look","calls":[{"c":"a","r":{"ok":"found"}},{"c":"b","r":{"bad":"found"}}],"u":{"out":7}}"#,
        ];
        assert_eq!(written(&ONE_OBJECT, &events).get(1..).unwrap(), expected);
    }
}
