//! A lane for each agent of a session: what it did when, on one scale. A page loads them after the events.

use std::fmt::Write as _;
use std::sync::Arc;

use stenograph::render::html::{SessionTimeline, TIMELINE_LEGEND};
use stenograph::render::{EventViewer, ViewKind};
use stenograph_store::session_events::SessionEvents;

use super::super::address::{Params, link, session_path};
use super::super::html::{counted, short, text};
use super::super::state::{NamedSession, Viewer};
use super::super::trouble::AnswerProblem;

/// How many agents have a lane. The others have only a link.
const LANES_MAX: usize = 12;

/// The lane of an agent.
#[derive(Debug)]
pub struct AgentLane {
    /// The sub-agent whose conversation has the events; `None` for the main conversation.
    pub agent: Option<String>,
    /// A sub-agent whose events are in the main conversation.
    inline: Option<String>,
    /// Its first event there.
    first: u64,
    events: u64,
    drawing: String,
}

/// The sub-agents of a session that have a conversation of their own, in the order of their start, each with the beginning of its
/// task.
pub fn sub_agents(named: &NamedSession) -> Vec<(&str, &str)> {
    let rows = named.sources.iter().filter(|row| row.copy_of.is_none() && row.covered_by.is_none());
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| row.summary.header.started_ms);
    rows.into_iter()
        .filter_map(|row| Some((row.thread.as_deref()?, row.summary.header.query.as_deref().unwrap_or_default())))
        .collect()
}

/// The lanes of the main agent and of its sub-agents, with a link to each conversation.
pub fn lanes_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let named = viewer.session(name)?;
    let (path, current) = (session_path(&named.session.name), params.value("agent"));
    let agents = sub_agents(&named);
    let lanes = drawn(viewer, &named, &agents)?;
    let mut html = String::from("<nav class=\"agents lanes\" aria-label=\"Agents\">");
    for lane in lanes.iter() {
        let agent = lane.agent.as_deref();
        let about = agents.iter().find(|(thread, _)| Some(*thread) == agent).map_or("", |(_, about)| about);
        let label = lane.inline.as_deref().or(agent).unwrap_or("main");
        let first = lane.first.to_string();
        let mut address: Vec<(&str, &str)> = agent.map(|agent| ("agent", agent)).into_iter().collect();
        if lane.inline.is_some() {
            address.push(("at", &first));
        }
        let is_current = lane.inline.is_none() && agent == current;
        let _ = write!(
            html,
            "<div class=\"lane\" data-agent=\"{}\"><a href=\"{}\" title=\"{}\"{}>{}</a><small>{}</small>\
             <div class=\"drawing\">{}<span class=\"here\" hidden></span></div></div>",
            text(agent.unwrap_or_default()),
            text(&link(&path, &address)),
            short(about, 200),
            if is_current { " aria-current=\"true\"" } else { "" },
            short(label, 24),
            counted(lane.events, "event"),
            lane.drawing,
        );
    }
    let rest = agents.get(LANES_MAX - 1..).unwrap_or_default();
    html.push_str(&links_html(&path, rest, current));
    let _ = write!(html, "<p class=\"key\">{TIMELINE_LEGEND}</p></nav>");
    Ok(html)
}

/// A link to each conversation.
pub fn links_html(path: &str, agents: &[(&str, &str)], current: Option<&str>) -> String {
    let mut html = String::new();
    for (agent, about) in agents {
        let _ = write!(
            html,
            "<a href=\"{}\" title=\"{}\"{}>{}</a>",
            text(&link(path, &[("agent", agent)])),
            short(about, 200),
            if current == Some(*agent) { " aria-current=\"true\"" } else { "" },
            short(agent, 24)
        );
    }
    html
}

fn drawn(viewer: &Viewer, named: &NamedSession, agents: &[(&str, &str)]) -> Result<Arc<Vec<AgentLane>>, AnswerProblem> {
    let agents = agents.iter().take(LANES_MAX - 1).map(|(agent, _)| Some(*agent));
    let conversations: Vec<(Option<&str>, SessionEvents)> = std::iter::once(None)
        .chain(agents)
        .filter_map(|agent| Some((agent, viewer.events(&named.session, &named.sources, agent)?)))
        .collect();
    let events: Vec<&SessionEvents> = conversations.iter().map(|(_, events)| events).collect();
    viewer.lanes(&events, || {
        let (mut timeline, mut lanes) = (SessionTimeline::default(), Vec::new());
        for (agent, events) in &conversations {
            add(viewer, events, *agent, &mut timeline, &mut lanes)?;
        }
        let drawings = timeline.lanes_html(lanes.len());
        lanes.iter_mut().zip(drawings).for_each(|(lane, drawing)| lane.drawing = drawing);
        Ok(lanes)
    })
}

/// Adds the events of a conversation to its lane. Events of a sub-agent among those of the main agent have a lane of their own.
fn add(
    viewer: &Viewer,
    events: &SessionEvents,
    agent: Option<&str>,
    timeline: &mut SessionTimeline,
    lanes: &mut Vec<AgentLane>,
) -> Result<(), AnswerProblem> {
    let lane = |inline: Option<&str>, first| AgentLane {
        agent: agent.map(str::to_owned),
        inline: inline.map(str::to_owned),
        first,
        events: 0,
        drawing: String::new(),
    };
    let own = lanes.len();
    lanes.push(lane(None, 1));
    let mut views = EventViewer::default();
    events.all(&viewer.store, &mut |number, event| {
        let context = views.context(event);
        if event.restates {
            return;
        }
        let inline = event.thread.as_deref().filter(|_| agent.is_none());
        let at = match inline {
            None => own,
            Some(thread) => match lanes.iter().position(|lane| lane.inline.as_deref() == Some(thread)) {
                Some(at) => at,
                None if lanes.len() < LANES_MAX => {
                    lanes.push(lane(Some(thread), number));
                    lanes.len() - 1
                }
                None => own,
            },
        };
        if let Some(lane) = lanes.get_mut(at) {
            lane.events += 1;
        }
        timeline.add(at, number, event, ViewKind::of(event, &context).0);
    })?;
    Ok(())
}
