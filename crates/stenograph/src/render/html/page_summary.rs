//! What a page says about a whole session beside its events: an outline, the tools, the changed files, the failures and the
//! agents. It is a fold over the views of all events. Its lists have limits.

use std::collections::BTreeMap;

use super::escape::{escaped_line, first_words};
use super::event::{duration, first_text, short_count};
use super::timeline::{SampleKind, SessionTimeline};
use crate::evidence::UserQuestion;
use crate::model::{Body, Event};
use crate::render::{Block, EventView, ViewKind, grouped};

/// How many characters of a prompt the outline shows.
const PROMPT_CHARS_MAX: usize = 100;

/// How many characters of the name of a lane are shown below the drawing.
const LANE_NAME_CHARS_MAX: usize = 40;

/// The entries of each list. A page is for reading; `steno audit` lists everything.
const OUTLINE_MAX: usize = 20_000;
const TOOLS_MAX: usize = 60;
const FILES_MAX: usize = 2_000;
const FILES_SHOWN_MAX: usize = 40;
const FAILURES_MAX: usize = 30;
const AGENTS_MAX: usize = 1_000;

/// A fold over the events that a page shows.
#[derive(Debug, Default)]
pub struct PageSummary {
    outline: Vec<OutlineEntry>,
    tools: BTreeMap<String, ToolCount>,
    files: BTreeMap<String, FileCount>,
    failures: Vec<(String, String)>,
    failure_count: u64,
    agents: Vec<AgentLane>,
    timeline: SessionTimeline,
    prompts: u64,
    compactions: u64,
    /// Whether the last event was a compaction: a source may state one in two records.
    is_compacting: bool,
}

/// The element of an event: its id is the prefix, `e` and the number.
#[derive(Clone, Copy, Debug)]
pub struct HtmlAddress<'a> {
    /// As in [`HtmlOptions::id_prefix`](super::HtmlOptions::id_prefix).
    pub id_prefix: &'a str,
    /// The number of the event.
    pub number: u64,
}

/// A prompt, or a compaction.
#[derive(Debug, Default)]
struct OutlineEntry {
    id: String,
    words: String,
    is_compaction: bool,
    calls: u64,
    failures: u64,
    added: u64,
    removed: u64,
}

#[derive(Debug, Default)]
struct ToolCount {
    calls: u64,
    failed: u64,
}

#[derive(Debug, Default)]
struct FileCount {
    id: String,
    edits: u64,
    added: u64,
    removed: u64,
}

/// The main conversation, or a sub-agent.
#[derive(Debug, Default)]
struct AgentLane {
    name: String,
    id: String,
    events: u64,
}

impl PageSummary {
    /// Begins the events of another agent; the first one is the main conversation. `id` is the element where they begin.
    pub fn agent(&mut self, name: &str, id: &str) -> usize {
        if self.agents.len() < AGENTS_MAX {
            self.agents.push(AgentLane { name: name.to_owned(), id: id.to_owned(), events: 0 });
        }
        self.agents.len().saturating_sub(1)
    }

    /// The number of prompts.
    pub fn prompts(&self) -> u64 {
        self.prompts
    }

    /// Adds an event that is on the page: the agent it belongs to, and its number there.
    pub fn add(&mut self, agent: usize, place: &HtmlAddress<'_>, event: &Event<'_>, view: &EventView) {
        let id = &format!("{}e{}", place.id_prefix, place.number);
        let agent = match event.thread.as_deref() {
            Some(thread) if agent == 0 => self.inline_agent(thread, id),
            _ => agent,
        };
        if let Some(lane) = self.agents.get_mut(agent) {
            lane.events += 1;
        }
        let kind = SampleKind::of(view.kind);
        self.count(agent, kind, id, event, view);
        self.is_compacting = kind == SampleKind::Compaction || self.is_compacting && kind == SampleKind::Other;
        let number = place.number * u64::from(place.id_prefix.is_empty());
        self.timeline.add(agent, number, event, view.kind);
    }

    /// The lane of a sub-agent whose records are inside the main source.
    fn inline_agent(&mut self, thread: &str, id: &str) -> usize {
        let name = format!("Sub-agent {thread}");
        let known = self.agents.iter().position(|lane| lane.name == name);
        known.unwrap_or_else(|| self.agent(&name, id))
    }

    fn count(&mut self, agent: usize, kind: SampleKind, id: &str, event: &Event<'_>, view: &EventView) {
        match kind {
            SampleKind::User if agent == 0 => {
                self.prompts += 1;
                // A command as people type it, and no text that the agent adds.
                let question = UserQuestion::of(event).map(|question| question.text().to_owned());
                let words = first_words(&question.unwrap_or_else(|| first_text(view)), PROMPT_CHARS_MAX);
                self.entry(OutlineEntry { id: id.to_owned(), words, ..OutlineEntry::default() });
            }
            SampleKind::Compaction if self.is_compacting => {}
            SampleKind::Compaction => {
                self.compactions += 1;
                let remark = view.remark.as_deref().map(|remark| format!(": {remark}")).unwrap_or_default();
                let words = format!("Context compacted{remark}");
                self.entry(OutlineEntry { id: id.to_owned(), words, is_compaction: true, ..OutlineEntry::default() });
            }
            SampleKind::Failure => {
                self.failure_count += 1;
                if let Some(entry) = self.outline.last_mut() {
                    entry.failures += 1;
                }
                if matches!(view.kind, ViewKind::Result(_))
                    && let Some(tool) = self.tools.get_mut(&view.heading)
                {
                    tool.failed += 1;
                }
                if self.failures.len() < FAILURES_MAX {
                    let words = format!("{} {}", view.heading, first_text(view));
                    self.failures.push((id.to_owned(), first_words(&words, PROMPT_CHARS_MAX)));
                }
            }
            SampleKind::Call => self.call(id, event, view),
            SampleKind::User | SampleKind::Agent | SampleKind::Thinking | SampleKind::Other => {}
        }
    }

    fn entry(&mut self, entry: OutlineEntry) {
        if self.outline.len() < OUTLINE_MAX {
            self.outline.push(entry);
        }
    }

    fn call(&mut self, id: &str, event: &Event<'_>, view: &EventView) {
        if let Body::ToolCall { name, .. } = &event.body
            && (self.tools.len() < TOOLS_MAX || self.tools.contains_key(name.as_ref()))
        {
            self.tools.entry(name.to_string()).or_default().calls += 1;
        }
        let (mut added, mut removed) = (0, 0);
        for block in &view.blocks {
            let Block::Diff { path, hunks } = block else { continue };
            let lines = |sign: char| hunks.lines().filter(|line| line.starts_with(sign)).count() as u64;
            let (more, fewer) = (lines('+'), lines('-'));
            (added, removed) = (added + more, removed + fewer);
            if self.files.len() < FILES_MAX || self.files.contains_key(path) {
                let file = self.files.entry(path.clone()).or_default();
                if file.edits == 0 {
                    id.clone_into(&mut file.id);
                }
                (file.edits, file.added, file.removed) = (file.edits + 1, file.added + more, file.removed + fewer);
            }
        }
        if let Some(entry) = self.outline.last_mut() {
            (entry.calls, entry.added, entry.removed) = (entry.calls + 1, entry.added + added, entry.removed + removed);
        }
    }

    /// The outline: a link to each prompt and each compaction, with what happened after it.
    pub fn outline_html(&self) -> String {
        let mut out = String::from("<ol>\n");
        for entry in &self.outline {
            let mut about: Vec<String> = Vec::new();
            if entry.calls > 0 {
                about.push(match entry.calls {
                    1 => "1 call".to_owned(),
                    calls => format!("{} calls", short_count(calls)),
                });
            }
            if entry.added + entry.removed > 0 {
                about.push(changed_lines(entry.added, entry.removed));
            }
            if entry.failures > 0 {
                about.push(format!("<em>{} failed</em>", grouped(entry.failures)));
            }
            let class = if entry.is_compaction { " class=\"compacted\"" } else { "" };
            let words = if entry.words.is_empty() { "(no text)".to_owned() } else { escaped_line(&entry.words) };
            let about = if about.is_empty() { String::new() } else { format!("<small>{}</small>", about.join(" ")) };
            out.push_str(&format!("<li{class}><a href=\"#{}\">{words}</a>{about}</li>\n", entry.id));
        }
        out.push_str("</ol>\n");
        if self.agents.len() > 1 {
            out.push_str("<h2>Agents</h2>\n<ul>\n");
            for (at, lane) in self.agents.iter().enumerate() {
                let (name, id) = (escaped_line(&first_words(&lane.name, PROMPT_CHARS_MAX)), &lane.id);
                let events = grouped(lane.events);
                out.push_str(&format!(
                    "<li><a href=\"#{id}\"><span class=\"lane-mark lane-{}\"></span>{name}</a><small>{events} events</small></li>\n",
                    at % super::LANE_COLOURS
                ));
            }
            out.push_str("</ul>\n");
        }
        out
    }

    /// The lists: failures, tools and changed files.
    pub(crate) fn lists_html(&self) -> String {
        let mut out = String::new();
        if self.failure_count > 0 {
            let count = grouped(self.failure_count);
            out.push_str(&format!("<section><h2>Failures <small>{count}</small></h2><ul class=\"failures\">\n"));
            for (id, words) in &self.failures {
                out.push_str(&format!("<li><a href=\"#{id}\">{}</a></li>\n", escaped_line(words)));
            }
            out.push_str("</ul>");
            let more = self.failure_count - self.failures.len() as u64;
            if more > 0 {
                out.push_str(&format!("<p>and {} more</p>", grouped(more)));
            }
            out.push_str("</section>\n");
        }
        if !self.tools.is_empty() {
            let mut tools: Vec<(&String, &ToolCount)> = self.tools.iter().collect();
            tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.calls));
            let most = tools.first().map_or(1, |(_, tool)| tool.calls).max(1);
            let all = grouped(tools.iter().map(|(_, tool)| tool.calls).sum());
            out.push_str(&format!("<section><h2>Tools <small>{all} calls</small></h2><table>\n"));
            for (name, tool) in tools {
                let width = tool.calls * 100 / most;
                let failed = match tool.failed {
                    0 => String::new(),
                    failed => format!("<em>{} failed</em>", grouped(failed)),
                };
                out.push_str(&format!(
                    "<tr><th scope=\"row\">{}</th><td>{failed}</td><td class=\"right\">{}<svg class=\"bar\" viewBox=\"0 0 100 2\" \
                     preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{width}\" height=\"2\"/></svg></td></tr>\n",
                    escaped_line(&first_words(name, 60)),
                    grouped(tool.calls)
                ));
            }
            out.push_str("</table></section>\n");
        }
        self.files_html(&mut out);
        out
    }

    fn files_html(&self, out: &mut String) {
        if self.files.is_empty() {
            return;
        }
        let mut files: Vec<(&String, &FileCount)> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| std::cmp::Reverse(file.added + file.removed));
        let count = grouped(files.len() as u64);
        out.push_str(&format!("<section><h2>Changed files <small>{count}</small></h2><table class=\"files\">\n"));
        for (path, file) in files.iter().take(FILES_SHOWN_MAX) {
            out.push_str(&format!(
                "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td class=\"right\">{}</td></tr>\n",
                file.id,
                escaped_line(path),
                changed_lines(file.added, file.removed)
            ));
        }
        out.push_str("</table>");
        let more = files.len().saturating_sub(FILES_SHOWN_MAX) as u64;
        if more > 0 {
            out.push_str(&format!("<p>and {} more</p>", grouped(more)));
        }
        out.push_str("</section>\n");
    }

    /// The drawing of what happened when, with the names of its lanes if there are several.
    pub(crate) fn timeline_html(&self) -> String {
        let mut out = self.timeline.html(self.agents.len());
        if !out.is_empty() && self.agents.len() > 1 {
            out.push_str("<ol class=\"lane-names\" aria-label=\"Lanes from the top\">");
            for (at, lane) in self.agents.iter().enumerate() {
                let name = escaped_line(&first_words(&lane.name, LANE_NAME_CHARS_MAX));
                let colour = at % super::LANE_COLOURS;
                out.push_str(&format!("<li><span class=\"lane-mark lane-{colour}\"></span>{name}</li>"));
            }
            out.push_str("</ol>\n");
        }
        out
    }

    /// Facts about the session that only its events state: prompts, failures, compactions, sub-agents, the time it took.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("Prompts", grouped(self.prompts))];
        if let (Some(first), Some(last)) = (self.timeline.times().min(), self.timeline.times().max())
            && let Some(took) = duration(last - first)
        {
            facts.push(("Duration", took));
        }
        if self.compactions > 0 {
            facts.push(("Compactions", grouped(self.compactions)));
        }
        if self.agents.len() > 1 {
            facts.push(("Sub-agents", grouped(self.agents.len() as u64 - 1)));
        }
        facts
    }
}

fn changed_lines(added: u64, removed: u64) -> String {
    let part = |count: u64, tag: &str, sign: &str| match count {
        0 => String::new(),
        count => format!("<{tag}>{sign}{}</{tag}>", short_count(count)),
    };
    [part(added, "ins", "+"), part(removed, "del", "\u{2212}")].join(" ").trim().to_owned()
}
