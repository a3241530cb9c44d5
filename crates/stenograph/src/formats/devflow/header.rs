//! The header of devflow's document, for a session of another system or from its own event. It is written before the first
//! turn, so that it states only what is known of the session beforehand.

use super::{TURNS, ZERO_TIME, go_json};
use crate::json::{Draft, indent};
use crate::model::{Event, Outline, Tokens};
use crate::time::Time;

/// The flow id of another system's session.
const FLOW: &str = "imported";

/// The header of another system's session.
pub fn of_session(outline: &Outline, run: &str) -> String {
    let mut metadata = Draft::new();
    metadata.set_str("flowId", FLOW);
    metadata.set_str("startedAt", &iso_time(outline.started.as_ref()));
    metadata.set_str("endedAt", &iso_time(outline.ended.as_ref()));
    metadata.set_str("status", status(outline));
    metadata.set("totalTokensIn", Tokens::of(&outline.total).all_input().to_string());
    metadata.set("totalTokensOut", outline.total.output.unwrap_or(0).to_string());
    metadata.set("totalCost", outline.total.cost.map_or(0.0, |cost| cost.value()).to_string());
    metadata.set_opt("error", outline.failure.as_deref().filter(|error| !error.is_empty()));
    let mut header = Draft::new();
    header.set_str("runId", run);
    header.nest("metadata", metadata);
    header.render(None)
}

/// The stated fields of a header event, to be merged with its extra fields.
pub fn stated<'a>(event: &Event<'_>) -> Draft<'a> {
    let mut draft = Draft::new();
    draft.set_opt("runId", event.session.as_deref());
    if let Some(time) = event.time.as_ref().and_then(Time::to_iso) {
        let mut metadata = Draft::new();
        metadata.set_str("startedAt", &time);
        draft.nest("metadata", metadata);
    }
    draft
}

/// The JSON object up to its last value, the open list of turns.
pub fn opened(object: &str) -> String {
    let indented = indent(&go_json::escaped(object), 0);
    let open = indented.strip_suffix('}').unwrap_or(&indented).trim_end();
    let comma = if open.ends_with('{') && open.len() == 1 { "" } else { "," };
    format!("{open}{comma}\n  \"{TURNS}\": [")
}

fn iso_time(time: Option<&Time<'_>>) -> String {
    time.and_then(Time::to_iso).map_or_else(|| ZERO_TIME.to_owned(), std::borrow::Cow::into_owned)
}

/// How a run of another system ended, in devflow's words. It was canceled only if somebody interrupted it.
fn status(outline: &Outline) -> &'static str {
    if outline.was_interrupted() {
        "canceled"
    } else if outline.success == Some(false) {
        "failed"
    } else {
        "completed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Content};

    #[test]
    fn an_interrupted_run_was_canceled() {
        let stopped = |reason: &'static str, success| {
            let content = Some(Content::text("why"));
            let stop = Event::new(Body::Stop { reason: Some(reason.into()), success, content });
            of_session(&Outline::of("codex", &[stop]), "run")
        };
        let failed = stopped("crash", Some(false));
        assert!(failed.contains(r#""status":"failed""#) && failed.contains(r#""error":"why""#));
        assert!(stopped("interrupted", Some(false)).contains(r#""status":"canceled""#));
        assert!(stopped("interrupted", Some(true)).contains(r#""status":"completed""#));
        let completed = stopped("end_turn", None);
        assert!(completed.contains(r#""status":"completed""#) && !completed.contains("error"));
    }
}
