//! `steno find --session`: finds sessions that have all words of a query, in any of their events.

use stenograph::json::Draft;
use stenograph::query::Query;
use stenograph_store::hits;
use stenograph_store::index::search::{Order, SearchRequest};

use super::{Options, offset, report_nothing, snippet_length};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped, harmless_json};

pub(super) fn run(options: &Options, query: &Query, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let offset = offset(options.cursor.as_deref())?;
    let root = options.place.root();
    let order = if options.newest { Order::Newest } else { Order::Best };
    let request = SearchRequest { query, order, offset, limit: options.limit(), within: root.as_deref() };
    let answer = hits::find_across(&mut options.place.store()?.searcher()?, &request, snippet_length())?;
    let next = Some(offset + answer.shown).filter(|next| *next < answer.total).map(|next| next.to_string());
    if options.json {
        for shown in &answer.hits {
            output.line(&harmless_json(&shown.json()))?;
        }
        let draft = Draft::new().with("total", answer.total).with("exact", answer.is_exact);
        output.line(&draft.with("shown", answer.shown).with("next", &next).render(None))?;
    } else {
        options.print(&answer.hits, output)?;
    }
    if answer.shown == 0 {
        if !options.json {
            report_nothing(query, options, output);
        }
        return Ok(ExitStatus::No);
    }
    if !options.json {
        let about = if answer.is_exact { "" } else { "about " };
        let shown = grouped(answer.shown as u64);
        let more = next.map(|next| format!(": {shown} shown; more with --cursor {next}")).unwrap_or_default();
        output.say(&format!("\n{about}{}{more}", counted(answer.total as u64, "session")));
    }
    Ok(ExitStatus::Done)
}
