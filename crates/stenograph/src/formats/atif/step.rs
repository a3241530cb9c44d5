//! The steps of a trajectory, collected from events of other formats: what one model call says and does, with the results of its
//! calls. This module does not know the document around them.

use std::collections::VecDeque;

use crate::formats::placeholder;
use crate::json::Draft;
use crate::model::{Body, Content, Data, Event, Piece, PieceKind, Role, Usage};
use crate::synthesizer::CallIds;
use crate::text::quote;
use crate::time::Time;

/// How many steps may wait for the results of their calls.
const PENDING_MAX: usize = 64;

/// The media types that the format has for images.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The steps of one trajectory.
#[derive(Debug, Default)]
pub struct Steps {
    /// The steps not yet written, oldest first.
    pending: VecDeque<Step>,
    /// The number of steps.
    pub count: u64,
    /// The sum over all steps that were written.
    pub metrics: Metrics,
}

/// One step.
#[derive(Debug, Default)]
struct Step {
    source: &'static str,
    time: Option<String>,
    model: Option<String>,
    group: Option<String>,
    thinking: Option<String>,
    message: Option<String>,
    calls: Vec<String>,
    /// The calls without a result.
    waiting: Vec<String>,
    results: Vec<String>,
    usage: Usage,
    stop_reason: Option<String>,
}

/// What a step has last. A reader finds its parts in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Nothing,
    Thinking,
    Message,
    Calls,
    Results,
}

/// The sums of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    prompt: Option<u64>,
    completion: Option<u64>,
    cached: Option<u64>,
    pub cost: Option<f64>,
}

impl Metrics {
    /// Adds a usage.
    pub fn add(&mut self, usage: &Usage) {
        let add = |sum: &mut Option<u64>, count: Option<u64>| {
            *sum = count.map_or(*sum, |count| Some(sum.unwrap_or(0).saturating_add(count)));
        };
        add(&mut self.prompt, prompt(usage));
        add(&mut self.completion, usage.output);
        add(&mut self.cached, usage.cache_read);
        let cost = usage.cost.map(|cost| cost.value());
        self.cost = self.cost.into_iter().chain(cost).reduce(|sum, cost| sum + cost);
    }

    /// The field `final_metrics`.
    pub fn totals(&self, steps: u64) -> Draft<'static> {
        let mut draft = Draft::new();
        draft.set_number("total_prompt_tokens", self.prompt);
        draft.set_number("total_completion_tokens", self.completion);
        draft.set_number("total_cached_tokens", self.cached);
        if let Some(cost) = self.cost {
            draft.set("total_cost_usd", cost.to_string());
        }
        draft.set_number("total_steps", Some(steps));
        draft
    }
}

/// The tokens read, including those of a cache.
fn prompt(usage: &Usage) -> Option<u64> {
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    usage.input.map(|input| input.saturating_add(cached))
}

impl Steps {
    /// Adds an event. A result names the sub-agents that its call started.
    pub fn add(&mut self, event: &Event<'_>, ids: &mut CallIds, subagents: &[String]) {
        let at = match &event.body {
            Body::Message { role: Role::Assistant | Role::Unknown, content } => {
                self.answer(event, Stage::Message, |step| step.message = Some(content_json(content)))
            }
            Body::Message { role, content } => self.push(step_of(event, source(*role), content)),
            // Agents give the model the summary of a compaction as a user message.
            Body::Compaction { summary: Some(summary) } => self.push(step_of(event, "user", summary)),
            Body::Thinking { content } => {
                let thinking = content.joined().to_json();
                self.answer(event, Stage::Thinking, |step| step.thinking = Some(thinking))
            }
            Body::ToolCall { call, name, input } => {
                let id = ids.call(call.as_deref(), name);
                let mut draft = Draft::new();
                draft.set_str("tool_call_id", &id);
                draft.set_str("function_name", name);
                draft.set("arguments", input.to_object().into_owned());
                self.answer(event, Stage::Calls, |step| {
                    step.calls.push(draft.render(None));
                    step.waiting.push(id);
                })
            }
            Body::ToolResult { call, content, error, .. } => {
                let id = ids.result(call.as_deref()).map(|(id, _)| id);
                self.result(event, id, |id| result_json(id, content, *error, subagents))
            }
            Body::Fact { .. } | Body::Compaction { summary: None } | Body::Failure { .. } => None,
            Body::Stop { .. } | Body::Other { .. } => None,
        };
        // A record that only counts tokens belongs to the answer before it.
        let is_count = matches!(event.body, Body::Fact { .. });
        let answer = || self.pending.iter().rposition(Step::is_answer);
        let at = at.or_else(|| if is_count { answer() } else { None });
        let step = at.and_then(|at| self.pending.get_mut(at)).filter(|step| step.is_answer());
        if let (Some(usage), Some(step)) = (&event.usage, step)
            && step.usage.is_empty()
        {
            step.usage = *usage;
        }
    }

    fn push(&mut self, step: Step) -> Option<usize> {
        self.pending.push_back(step);
        Some(self.pending.len() - 1)
    }

    /// Puts a part of an answer into the step of its model call.
    fn answer(&mut self, event: &Event<'_>, stage: Stage, put: impl FnOnce(&mut Step)) -> Option<usize> {
        if !self.pending.back().is_some_and(|step| step.continues(event, stage)) {
            self.push(Step { source: "agent", ..Step::begun(event) });
        }
        let at = self.pending.len() - 1;
        let step = self.pending.get_mut(at)?;
        step.model = step.model.take().or_else(|| event.model.as_deref().map(str::to_owned));
        step.group = step.group.take().or_else(|| event.group.as_deref().map(str::to_owned));
        step.stop_reason = step.stop_reason.take().or_else(|| event.stop_reason.as_deref().map(str::to_owned));
        put(step);
        Some(at)
    }

    /// Puts a result into the step of its call. A result without a known call is a step of its own.
    fn result(
        &mut self,
        event: &Event<'_>,
        id: Option<String>,
        json: impl FnOnce(Option<&str>) -> String,
    ) -> Option<usize> {
        let asked = |step: &Step| id.as_ref().is_some_and(|id| step.waiting.contains(id));
        let at = match self.pending.iter().position(asked) {
            Some(at) => at,
            None => self.push(Step { source: "agent", ..Step::begun(event) })?,
        };
        let step = self.pending.get_mut(at)?;
        let id = id.filter(|id| step.waiting.contains(id));
        step.waiting.retain(|waiting| Some(waiting) != id.as_ref());
        step.results.push(json(id.as_deref()));
        Some(at)
    }

    /// The steps that can no longer change.
    pub fn finished(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        while let Some(first) = self.pending.front() {
            let is_last_answer = !self.pending.iter().skip(1).any(Step::is_answer);
            let may_change = !first.waiting.is_empty() || (first.is_answer() && is_last_answer);
            if may_change && self.pending.len() <= PENDING_MAX {
                break;
            }
            written.extend(self.next());
        }
        written
    }

    /// All steps.
    pub fn all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }

    fn next(&mut self) -> Option<String> {
        let step = self.pending.pop_front()?;
        self.count += 1;
        self.metrics.add(&step.usage);
        Some(step.render(self.count))
    }
}

impl Step {
    fn begun(event: &Event<'_>) -> Step {
        Step { time: event.time.as_ref().and_then(timestamp), ..Step::default() }
    }

    fn is_answer(&self) -> bool {
        self.source == "agent"
    }

    fn stage(&self) -> Stage {
        let has = [
            (Stage::Results, !self.results.is_empty()),
            (Stage::Calls, !self.calls.is_empty()),
            (Stage::Message, self.message.is_some()),
            (Stage::Thinking, self.thinking.is_some()),
        ];
        has.into_iter().find(|(_, has)| *has).map_or(Stage::Nothing, |(stage, _)| stage)
    }

    /// Whether an event belongs to the same model call, and its part comes next.
    fn continues(&self, event: &Event<'_>, stage: Stage) -> bool {
        let differs = |own: &Option<String>, other: Option<&str>| {
            own.as_deref().zip(other).is_some_and(|(own, other)| own != other)
        };
        let is_next = self.stage() < stage || (stage == Stage::Calls && self.stage() == Stage::Calls);
        self.is_answer()
            && is_next
            && !differs(&self.group, event.group.as_deref())
            && !differs(&self.model, event.model.as_deref())
            && (self.usage.is_empty() || event.usage.is_none())
    }

    fn render(self, number: u64) -> String {
        let mut draft = Draft::new();
        draft.set_number("step_id", Some(number));
        draft.set_opt("timestamp", self.time.as_deref());
        draft.set_str("source", self.source);
        draft.set_opt("model_name", self.model.as_deref());
        draft.set("message", self.message.unwrap_or_else(|| quote("")));
        if let Some(thinking) = self.thinking {
            draft.set("reasoning_content", thinking);
        }
        if !self.calls.is_empty() {
            draft.set_list("tool_calls", self.calls);
        }
        if !self.results.is_empty() {
            let mut observation = Draft::new();
            observation.set_list("results", self.results);
            draft.nest("observation", observation);
        }
        if !self.usage.is_empty() {
            draft.nest("metrics", metrics_draft(&self.usage));
        }
        if let Some(reason) = self.stop_reason {
            let mut extra = Draft::new();
            extra.set_str("stop_reason", &reason);
            draft.nest("extra", extra);
        }
        draft.render(None)
    }
}

fn step_of(event: &Event<'_>, source: &'static str, content: &Content<'_>) -> Step {
    Step { source, message: Some(content_json(content)), ..Step::begun(event) }
}

fn source(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant | Role::Unknown => "agent",
        Role::System | Role::Developer | Role::Tool => "system",
    }
}

fn metrics_draft(usage: &Usage) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_number("prompt_tokens", prompt(usage));
    draft.set_number("completion_tokens", usage.output);
    draft.set_number("cached_tokens", usage.cache_read);
    if let Some(cost) = usage.cost {
        draft.set("cost_usd", cost.to_string());
    }
    let mut extra = Draft::new();
    extra.set_number("cache_creation_input_tokens", usage.cache_write);
    extra.set_number("reasoning_output_tokens", usage.reasoning);
    if !extra.is_empty() {
        draft.nest("extra", extra);
    }
    draft
}

fn result_json(id: Option<&str>, content: &Content<'_>, error: Option<bool>, subagents: &[String]) -> String {
    let mut draft = Draft::new();
    draft.set_opt("source_call_id", id);
    draft.set("content", content_json(content));
    if !subagents.is_empty() {
        let reference = |name: &String| Draft::new().with("trajectory_id", name).render(None);
        draft.set_list("subagent_trajectory_ref", subagents.iter().map(reference));
    }
    if let Some(error) = error {
        let mut extra = Draft::new();
        extra.set("tool_result_is_error", error.to_string());
        draft.nest("extra", extra);
    }
    draft.render(None)
}

/// A time as the format's own reader takes it: with a `T` and a time zone in capitals.
fn timestamp(time: &Time<'_>) -> Option<String> {
    let text = time.to_iso()?;
    let is_plain = text.contains('T') && !text.contains(['t', 'z', ' ']);
    if is_plain { Some(text.into_owned()) } else { time.to_utc() }
}

/// A content: text, or a list of texts and images. Images are files: data inside a record has no place.
fn content_json(content: &Content<'_>) -> String {
    let Content::Pieces(pieces) = content else { return content.joined().to_json() };
    let parts: Vec<String> = pieces.iter().filter_map(part).collect();
    let has_image = pieces.iter().any(|piece| piece.as_text().is_none() && part(piece).is_some());
    match has_image || parts.len() > 1 {
        true => format!("[{}]", parts.join(",")),
        false => placeholder::joined(content).to_json(),
    }
}

fn part(piece: &Piece<'_>) -> Option<String> {
    let mut draft = Draft::new();
    match &piece.kind {
        PieceKind::Text(text) => {
            draft.set_str("type", "text");
            draft.set_text("text", text);
        }
        PieceKind::Blob { media, data: Data::Url(path) | Data::File(path) } => {
            let media = media.as_deref().filter(|media| IMAGES.contains(media))?;
            let mut source = Draft::new();
            source.set_str("media_type", media);
            source.set_text("path", path);
            draft.set_str("type", "image");
            draft.nest("source", source);
        }
        PieceKind::Blob { data: Data::Inline(_), .. } | PieceKind::Other(_) => return None,
    }
    Some(draft.render(None))
}
