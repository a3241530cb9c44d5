//! The events of a conversation as HTML, one after the other: a call is written with its result, what happens between two
//! messages is one group, and a new day has a heading. It holds back only the open group, whose size has a limit.

use std::collections::HashMap;

use std::collections::BTreeMap;

use super::escape::escaped_line;
use super::event::{HtmlFacts, HtmlOptions, HtmlStep, event_html};
use crate::model::{Event, Usage};
use crate::render::{EventView, EventViewer, ViewKind, grouped};

/// The open group is written when it has this many steps, or takes this many bytes: memory must not grow with a session whose
/// agent never speaks. A later result is then written on its own.
const STEPS_MAX: usize = 100;
const GROUP_SIZE_MAX: usize = 1 << 20;

/// A group of at least this many steps says what it contains.
const SUMMED_STEPS_MIN: usize = 4;

/// Writes the events of one conversation in order.
#[derive(Debug)]
pub struct HtmlEvents {
    options: HtmlOptions,
    viewer: EventViewer,
    group: Vec<HtmlStep>,
    size: usize,
    /// The speaker of the last message.
    speaker: Option<String>,
    day: Option<jiff::civil::Date>,
    /// The first event since the last compaction.
    context_start: Option<u64>,
    /// Whether that event is written: in the middle of a conversation, what a compaction replaces begins before the first event.
    is_start_known: bool,
    /// The sub-agents whose events are among those of this conversation.
    threads: Vec<String>,
    notes: HashMap<u64, String>,
}

/// The sub-agents that have a lane of their own; the others share one.
const THREADS_MAX: usize = 1_000;

impl HtmlEvents {
    /// The events of a new conversation.
    pub fn new(options: HtmlOptions) -> HtmlEvents {
        let viewer = EventViewer::default();
        HtmlEvents {
            options,
            viewer,
            group: Vec::new(),
            size: 0,
            speaker: None,
            day: None,
            context_start: None,
            is_start_known: true,
            notes: HashMap::new(),
            threads: Vec::new(),
        }
    }

    /// Adds an event that is not written, so that later events know their calls.
    pub fn skip(&mut self, event: &Event<'_>) {
        self.viewer.context(event);
    }

    /// Markup that follows single events, by their numbers. The caller escapes what people wrote.
    #[must_use]
    pub fn with_notes(self, notes: HashMap<u64, String>) -> HtmlEvents {
        HtmlEvents { notes, ..self }
    }

    /// The same for events in the middle of a conversation.
    #[must_use]
    pub fn in_the_middle(self) -> HtmlEvents {
        HtmlEvents { is_start_known: false, ..self }
    }

    /// Writes the next event, and returns what people read of it. Some of it may be held back until the group ends.
    pub fn event(
        &mut self,
        number: Option<u64>,
        event: &Event<'_>,
        usage: Option<Usage>,
        out: &mut String,
    ) -> Option<EventView> {
        let view = self.viewer.view(event);
        if view.is_blank() {
            return None;
        }
        self.begin_day(event, out);
        let lane =
            event.thread.as_deref().filter(|_| self.options.id_prefix.is_empty()).map(|thread| self.lane(thread));
        let mut facts = HtmlFacts { number, usage, lane, ..HtmlFacts::default() };
        if view.kind == ViewKind::Compaction {
            let range = self.context_start.take().zip(number.map(|number| number.saturating_sub(1)));
            let is_known = std::mem::replace(&mut self.is_start_known, true);
            facts.summarizes = range.filter(|(first, last)| is_known && first < last);
        } else if lane.is_none() {
            self.context_start = self.context_start.or(number);
        }
        let note = number.and_then(|number| self.notes.remove(&number)).unwrap_or_default();
        match view.kind {
            ViewKind::User | ViewKind::Agent | ViewKind::Failure | ViewKind::Compaction => {
                self.end_group(out);
                let speaker = matches!(view.kind, ViewKind::User | ViewKind::Agent).then(|| view.heading.clone());
                facts.speaks_on = view.kind == ViewKind::Agent && speaker == self.speaker;
                self.speaker = speaker;
                event_html(event, &view, &facts, &self.options, out);
                out.push_str(&note);
            }
            ViewKind::Result(_) => {
                let open = self.group.iter_mut().rev().find(|step| step.call.is_some() && step.call == view.call);
                match open.filter(|step| !step.is_answered) {
                    Some(step) => {
                        let before = step.size();
                        step.answer(event, &view, &facts, &self.options);
                        step.after.push_str(&note);
                        self.size += step.size() - before;
                    }
                    None => self.step(HtmlStep::of(event, &view, &facts, &self.options).followed_by(note)),
                }
            }
            ViewKind::Thinking | ViewKind::Call(_) | ViewKind::Notice | ViewKind::Injected | ViewKind::Bookkeeping => {
                self.step(HtmlStep::of(event, &view, &facts, &self.options).followed_by(note));
            }
        }
        if self.group.len() >= STEPS_MAX || self.size >= GROUP_SIZE_MAX {
            self.end_group(out);
        }
        Some(view)
    }

    /// Writes what was held back.
    pub fn end_group(&mut self, out: &mut String) {
        if self.group.is_empty() {
            return;
        }
        let is_quiet = self.group.iter().all(|step| step.is_hidden);
        out.push_str(if is_quiet { "<div class=\"steps quiet\">\n" } else { "<div class=\"steps\">\n" });
        if self.group.iter().filter(|step| !step.noun.is_empty()).count() >= SUMMED_STEPS_MIN {
            out.push_str(&format!("<p class=\"sum\">{}</p>\n", sum(&self.group)));
        }
        self.group.drain(..).for_each(|step| step.finish(out));
        out.push_str("</div>\n");
        self.size = 0;
    }

    fn step(&mut self, step: HtmlStep) {
        self.size += step.size();
        self.group.push(step);
    }

    /// The lane of a sub-agent, from 1.
    fn lane(&mut self, thread: &str) -> usize {
        match self.threads.iter().position(|known| known == thread) {
            Some(lane) => lane + 1,
            None if self.threads.len() < THREADS_MAX => {
                self.threads.push(thread.to_owned());
                self.threads.len()
            }
            None => THREADS_MAX,
        }
    }

    /// Writes the date, where a day begins.
    fn begin_day(&mut self, event: &Event<'_>, out: &mut String) {
        let Some(instant) = event.time.as_ref().and_then(crate::time::Time::instant) else { return };
        let zone = self.options.zone.clone();
        let day = zone.to_datetime(instant).date();
        if self.day.replace(day) != Some(day) {
            self.end_group(out);
            let text = crate::time::shown(instant, &zone, crate::time::Precision::Days);
            out.push_str(&format!("<p class=\"day\">{}</p>\n", escaped_line(&text)));
        }
    }
}

/// What a group contains: `3 commands, 2 edits, 1 failed`.
fn sum(group: &[HtmlStep]) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for step in group.iter().filter(|step| !step.noun.is_empty()) {
        *counts.entry(step.noun).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counted = |(noun, count): (&str, u64)| {
        let end = match (count, noun) {
            (1, _) => "",
            (_, noun) if noun.ends_with("ch") => "es",
            _ => "s",
        };
        format!("{} {noun}{end}", grouped(count))
    };
    let mut parts: Vec<String> = counts.into_iter().map(counted).collect();
    let failed = group.iter().filter(|step| step.is_failure).count() as u64;
    if failed > 0 {
        parts.push(format!("<em>{} failed</em>", grouped(failed)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Content, Input, Role};
    use crate::render::Shown;

    fn options() -> HtmlOptions {
        HtmlOptions { zone: jiff::tz::TimeZone::UTC, raw: Shown::No, text_size_max: None, id_prefix: String::new() }
    }

    fn written(events: &[Event<'_>]) -> String {
        let (mut writer, mut out) = (HtmlEvents::new(options()), String::new());
        for (at, event) in events.iter().enumerate() {
            writer.event(Some(at as u64 + 1), event, None, &mut out);
        }
        writer.end_group(&mut out);
        out
    }

    fn message(role: Role, text: &str) -> Event<'_> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call<'a>(id: &'a str, command: &'a str) -> Event<'a> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "Bash".into(), input: Input::Json(command.into()) })
    }

    fn result<'a>(id: &'a str, text: &'a str, error: Option<bool>) -> Event<'a> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text(text), error })
    }

    #[test]
    fn a_result_is_written_with_its_call() {
        let html = written(&[
            message(Role::User, "Fix it"),
            call("call-0001", r#"{"command":"a"}"#),
            call("call-0002", r#"{"command":"b"}"#),
            result("call-0001", "one", None),
            result("call-0002", "two\nthree", Some(true)),
            message(Role::Assistant, "Done"),
        ]);
        let expected = "<article class=\"event user\" id=\"e1\"><header><h2>You</h2><a class=\"n\" href=\"#e1\">1</a></header>\
            <div class=\"md\"><p>Fix it</p></div></article>\n\
            <div class=\"steps\">\n\
            <details class=\"event step call command\" id=\"e2\"><summary><b>$ a</b><small>1 line</small><span class=\"n\">2</span></summary>\
            <div class=\"result\" id=\"e4\"><pre class=\"output\">one</pre></div></details>\n\
            <details class=\"event step call command failed\" id=\"e3\" open><summary><b>$ b</b>\
            <small>failed \u{b7} 2 lines</small><span class=\"n\">3</span></summary>\
            <div class=\"result\" id=\"e5\"><pre class=\"output\">two\nthree</pre></div></details>\n\
            </div>\n\
            <article class=\"event agent\" id=\"e6\"><header><h3>Agent</h3><a class=\"n\" href=\"#e6\">6</a></header>\
            <div class=\"md\"><p>Done</p></div></article>\n";
        assert_eq!(html, expected);
    }

    #[test]
    fn a_group_that_never_ends_is_written_in_parts() {
        let text = "x".repeat(GROUP_SIZE_MAX / 4);
        let (mut writer, mut out, mut held) = (HtmlEvents::new(options()), String::new(), 0);
        for _ in 0..20 {
            writer.event(None, &result("call-0001", &text, None), None, &mut out);
            held = held.max(writer.size);
        }
        assert!(held < 2 * GROUP_SIZE_MAX && out.len() > 3 * GROUP_SIZE_MAX, "{held} {}", out.len());
    }

    #[test]
    fn a_group_says_what_it_contains() {
        let calls = ["call-0001", "call-0002", "call-0003", "call-0004"].map(|id| call(id, r#"{"command":"a"}"#));
        let html = written(&calls);
        assert!(html.contains("<p class=\"sum\">4 commands</p>"), "{html}");
    }
}
