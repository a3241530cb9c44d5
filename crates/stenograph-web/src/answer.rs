//! Answers one request: reads it within its limits, asks the tape, and spells what it gives. Every error is in the shape that the
//! client knows from its vendor.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request as Asked, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, UPGRADE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use stenograph::cassette::{Answer, Delivery, Manner, Played, Request, Trouble, Vendor, Verdict};

use crate::guard;
use crate::listen::ConnectionLoad;
use crate::route::{Route, route, vendor};
use crate::serve::{Pace, ServerEvent, Shared};
use crate::stream::Frames;

/// How large a request may be. The vendors take half of it.
const BODY_SIZE_MAX: usize = 64 << 20;

/// How long a request may take to arrive.
const BODY_WAIT: Duration = Duration::from_secs(30);

const DRIFT: HeaderName = HeaderName::from_static("steno-drift");

/// A trouble, and what is said about it.
type Refusal = (Trouble, String);

/// Answers a request.
pub async fn answer(
    State(shared): State<Shared>,
    ConnectInfo(line): ConnectInfo<ConnectionLoad>,
    asked: Asked,
) -> Response {
    let busy = shared.busy(&line);
    let (parts, body) = asked.into_parts();
    let path = parts.uri.path();
    let vendor = vendor(&parts.headers, path);
    let answered = match guard::refusal(&parts.headers, &parts.uri) {
        Some(why) => Err((Trouble::Forbidden, why.to_owned())),
        // Told in so many words, an agent that would rather have a socket asks again without.
        None if parts.headers.contains_key(UPGRADE) => {
            Err((Trouble::Upgrade, format!("there is no other protocol at {path}: ask with POST")))
        }
        None => match route(&parts.method, path) {
            Route::Answer(vendor) => match read(&parts.headers, body, vendor).await {
                Ok(request) => return play(&shared, vendor, &request, busy).await,
                Err(refusal) => Err(refusal),
            },
            Route::Count => read(&parts.headers, body, vendor).await.map(|request| Vendor::count(&request)),
            Route::Models => Ok(vendor.models(shared.player().tape())),
            Route::Model => one_model(&shared, vendor, path),
            Route::Drift => Ok(shared.player().report()),
            Route::Home => Ok("{\"steno\":\"a recording answers here; /steno/drift says how it goes\"}".to_owned()),
            Route::WrongMethod => Err((Trouble::Method, format!("{} is not for {path}", parts.method))),
            Route::Unknown => Err((Trouble::NotFound, format!("there is nothing at {path}"))),
        },
    };
    match answered {
        Ok(json) => respond(StatusCode::OK, json.into(), "application/json"),
        Err((trouble, message)) => {
            let rejected = ServerEvent::Rejected { status: trouble.status(), message: message.clone() };
            let _ = shared.tell.send(rejected);
            error(vendor, trouble, &message)
        }
    }
}

/// Reads a request, as far as it is neither too large nor too slow.
async fn read(headers: &HeaderMap, body: Body, vendor: Vendor) -> Result<Request, Refusal> {
    let too_large = || (Trouble::TooLarge, format!("a request has {BODY_SIZE_MAX} bytes at most"));
    let stated = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > BODY_SIZE_MAX as u64) {
        return Err(too_large());
    }
    let bytes: Bytes = match tokio::time::timeout(BODY_WAIT, to_bytes(body, BODY_SIZE_MAX)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_limit(&error) => return Err(too_large()),
        Ok(Err(_)) => return Err((Trouble::Bad, "the request broke off".to_owned())),
        Err(_) => return Err((Trouble::TooSlow, format!("the request took over {} seconds", BODY_WAIT.as_secs()))),
    };
    vendor.request(&bytes).map_err(|message| (Trouble::Bad, message))
}

/// Whether the limit ended it, and not the client.
fn is_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = one.source();
    }
    false
}

/// Asks the tape, and gives what it says.
async fn play(shared: &Shared, vendor: Vendor, request: &Request, busy: crate::serve::Busy) -> Response {
    let (played, spelled) = {
        let mut player = shared.player();
        let played = player.ask(request);
        let spelled = match played.verdict {
            Verdict::Answer(index) => player.tape().answers().get(index).map(|answer| spell(vendor, answer, request)),
            // What was not recorded is not made up: the answer says nothing, and the agent goes on.
            Verdict::Beside if player.manner() == Manner::Lenient => Some(spell(vendor, &Answer::default(), request)),
            Verdict::Beside | Verdict::Refused(_) | Verdict::Ended => None,
        };
        (played, spelled)
    };
    let _ = shared.tell.send(ServerEvent::Played(played.clone()));
    let response = match spelled {
        Some(Spelled::Whole(json, after_ms)) => {
            if shared.pace == Pace::AsRecorded {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
            }
            drop(busy);
            respond(StatusCode::OK, json.into(), "application/json")
        }
        Some(Spelled::Frames(frames)) => {
            let frames = Frames::new(frames, vendor, shared.pace, played.request, shared.tell.clone(), busy);
            let mut response = respond(StatusCode::OK, Body::from_stream(frames), "text/event-stream; charset=utf-8");
            put(&mut response, CACHE_CONTROL, "no-cache");
            response
        }
        Some(Spelled::Failed(status, json)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            respond(status, json.into(), "application/json")
        }
        None => {
            let (trouble, message) = refused(&played);
            error(vendor, trouble, &message)
        }
    };
    marked(response, &played)
}

fn spell(vendor: Vendor, answer: &Answer, request: &Request) -> Spelled {
    if let Some(failed) = &answer.failed {
        return Spelled::Failed(failed.status, vendor.failure(failed));
    }
    match request.delivery {
        Delivery::Whole => {
            let after_ms = answer.blocks.iter().map(|block| block.after_ms).max().unwrap_or_default();
            Spelled::Whole(vendor.whole(answer, request), after_ms)
        }
        Delivery::Streamed | Delivery::StreamedWithUsage => Spelled::Frames(vendor.frames(answer, request)),
    }
}

/// An answer in a vendor's words.
enum Spelled {
    /// As one object, and how long after the question it came.
    Whole(String, u64),
    Frames(Vec<stenograph::cassette::Frame>),
    /// As the error that was recorded. Who asked may ask again, as it did then.
    Failed(u16, String),
}

/// Why the tape gives nothing.
fn refused(played: &Played) -> Refusal {
    match played.verdict {
        Verdict::Beside => (Trouble::Drifted, "this is no part of the recorded conversation".to_owned()),
        Verdict::Ended => (Trouble::Ended, "the recording is at its end: it has no answer to this".to_owned()),
        Verdict::Answer(_) | Verdict::Refused(_) => {
            let first = played.news.first().map_or_else(|| "as before".to_owned(), stenograph::cassette::Drift::line);
            let more = played.count.saturating_sub(1);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            (Trouble::Drifted, format!("this is not the recorded request: {first}{more}; /steno/drift tells all"))
        }
    }
}

/// Says in the head of a response how far its request drifted.
fn marked(mut response: Response, played: &Played) -> Response {
    let drift = if played.count == 0 { "none".to_owned() } else { played.count.to_string() };
    put(&mut response, DRIFT, &drift);
    let id = format!("req_steno{:06}", played.request);
    put(&mut response, HeaderName::from_static("request-id"), &id);
    put(&mut response, HeaderName::from_static("x-request-id"), &id);
    response
}

fn one_model(shared: &Shared, vendor: Vendor, path: &str) -> Result<String, Refusal> {
    let name = path.split_once("/models/").map_or("", |(_, name)| name);
    let unknown = || (Trouble::NotFound, format!("the model {name} answers nothing in this recording"));
    vendor.model(shared.player().tape(), name).ok_or_else(unknown)
}

fn error(vendor: Vendor, trouble: Trouble, message: &str) -> Response {
    let status = StatusCode::from_u16(trouble.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(status, vendor.error(trouble, message).into(), "application/json");
    // Clients would try again by themselves, and ask a tape that has not changed.
    put(&mut response, HeaderName::from_static("x-should-retry"), "false");
    response
}

fn respond(status: StatusCode, body: Body, media: &str) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    put(&mut response, CONTENT_TYPE, media);
    response
}

fn put(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = value.parse() {
        response.headers_mut().insert(name, value);
    }
}
