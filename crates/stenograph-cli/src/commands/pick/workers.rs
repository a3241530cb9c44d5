//! Everything that takes time runs in threads of its own, so that no key waits for it: the rest of the sessions, searches, previews
//! and costs. Answers arrive in one channel. A thread skips requests that a newer one replaces.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use stenograph_store::index::catalogue::{IndexedSession, SessionId};
use stenograph_store::index::search::Order;

use super::matching::SearchedSessions;
use super::model::{Loading, Picker, PreviewKey, PreviewRequest};
use super::{Amount, preview};
use crate::commands::find;
use crate::error::CommandError;
use crate::filter::query_of;
use crate::output::Colour;
use crate::prices;
use crate::store::{SessionArgs, StoreArgs};
use crate::terminal::Line;
use stenograph_store::hits::ShownHit;
use stenograph_store::sessions::SessionCost;

/// How many hits a search returns.
const HITS_MAX: usize = 200;

/// What a thread found out.
enum PickAnswer {
    Sessions(Result<SearchedSessions, String>),
    Hits {
        query: String,
        found: Result<Vec<ShownHit>, String>,
    },
    Preview {
        key: PreviewKey,
        lines: Vec<Line>,
    },
    /// The costs, empty where they are unknown, and why they are.
    Costs {
        costs: Vec<(SessionId, String)>,
        problem: Option<String>,
    },
}

/// The threads of the finder.
pub struct Workers {
    answers: Receiver<PickAnswer>,
    searches: Sender<String>,
    previews: Sender<PreviewRequest>,
    costs: Sender<Vec<IndexedSession>>,
    /// What was asked and is not answered yet.
    is_loading: bool,
    open_search: Option<String>,
    open_preview: Option<PreviewKey>,
    open_costs: Vec<SessionId>,
}

/// Whether an answer changed the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    Something,
    Nothing,
}

impl Workers {
    /// Starts the threads, and the reading of all sessions.
    pub fn start(place: &SessionArgs, colour: Colour) -> Workers {
        let (send, answers) = mpsc::channel();
        let (here, sessions) = (place.clone(), send.clone());
        thread::spawn(move || {
            let read = super::sessions(&here, Amount::All).map_err(|error| error.message().to_owned());
            let _ = sessions.send(PickAnswer::Sessions(read));
        });
        let here = place.clone();
        let searches = serve(send.clone(), move |query: String| {
            let found = search(&here, &query).map_err(|error| error.message().to_owned());
            PickAnswer::Hits { query, found }
        });
        let here = place.clone();
        let previews = serve(send.clone(), move |request: PreviewRequest| {
            let lines = preview::lines(&here, &request, colour);
            PickAnswer::Preview { key: request.key, lines }
        });
        let here = place.clone();
        let costs = serve(send, move |sessions: Vec<IndexedSession>| {
            let (costs, problem) = match costs(&here, &sessions) {
                Ok(costs) => (costs, None),
                Err(error) => (sessions.iter().map(|session| (session.id, String::new())).collect(), Some(error)),
            };
            PickAnswer::Costs { costs, problem: problem.map(|error| error.message().to_owned()) }
        });
        Workers {
            answers,
            searches,
            previews,
            costs,
            is_loading: true,
            open_search: None,
            open_preview: None,
            open_costs: Vec::new(),
        }
    }

    /// Asks for what the finder needs, once.
    pub fn ask(&mut self, picker: &Picker) {
        // A thread that has ended answers nothing, so nothing waits for it.
        if let Some(query) = picker.wanted_search()
            && self.open_search.as_deref() != Some(query)
        {
            self.open_search = self.searches.send(query.to_owned()).ok().map(|()| query.to_owned());
        }
        if let Some(request) = picker.wanted_preview()
            && self.open_preview.as_ref() != Some(&request.key)
        {
            let key = request.key.clone();
            self.open_preview = self.previews.send(request).ok().map(|()| key);
        }
        let sessions = picker.wanted_costs();
        let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
        if !ids.is_empty() && ids != self.open_costs {
            self.open_costs = self.costs.send(sessions).ok().map(|()| ids).unwrap_or_default();
        }
    }

    /// Whether answers may still arrive.
    pub fn is_busy(&self) -> bool {
        self.is_loading || self.open_search.is_some() || self.open_preview.is_some() || !self.open_costs.is_empty()
    }

    /// Hands over the answers that have arrived.
    pub fn deliver(&mut self, picker: &mut Picker) -> Arrived {
        let mut arrived = Arrived::Nothing;
        while let Ok(answer) = self.answers.try_recv() {
            arrived = Arrived::Something;
            match answer {
                PickAnswer::Sessions(read) => {
                    self.is_loading = false;
                    match read {
                        Ok(sessions) => picker.take_sessions(sessions, Loading::Complete),
                        Err(reason) => picker.take_problem(reason),
                    }
                }
                PickAnswer::Hits { query, found } => {
                    self.open_search.take_if(|open| *open == query);
                    picker.take_hits(&query, found);
                }
                PickAnswer::Preview { key, lines } => {
                    self.open_preview.take_if(|open| *open == key);
                    picker.take_preview(key, lines);
                }
                PickAnswer::Costs { costs, problem } => {
                    if costs.iter().map(|(id, _)| *id).eq(self.open_costs.iter().copied()) {
                        self.open_costs.clear();
                    }
                    picker.take_costs(costs);
                    problem.into_iter().for_each(|reason| picker.take_problem(reason));
                }
            }
        }
        arrived
    }
}

/// Answers requests in a thread. Only the newest of the waiting requests is answered; the others get no answer.
fn serve<R: Send + 'static>(
    answers: Sender<PickAnswer>,
    mut work: impl FnMut(R) -> PickAnswer + Send + 'static,
) -> Sender<R> {
    let (send, requests) = mpsc::channel::<R>();
    thread::spawn(move || {
        while let Ok(request) = requests.recv() {
            let request = requests.try_iter().last().unwrap_or(request);
            if answers.send(work(request)).is_err() {
                return;
            }
        }
    });
    send
}

fn search(place: &SessionArgs, query: &str) -> Result<Vec<ShownHit>, CommandError> {
    let Some(query) = query_of(&[("project", place.project())], query)? else { return Ok(Vec::new()) };
    Ok(find::search(place, &query, Order::Best, 0, HITS_MAX)?.hits)
}

fn costs(place: &StoreArgs, sessions: &[IndexedSession]) -> Result<Vec<(SessionId, String)>, CommandError> {
    let (catalogue, prices) = (place.store()?.catalogue()?, prices::load()?);
    let cost = |session: &IndexedSession| (session.id, SessionCost::of(session, &catalogue, &prices).money());
    Ok(sessions.iter().map(cost).collect())
}
