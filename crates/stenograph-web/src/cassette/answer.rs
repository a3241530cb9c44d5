//! Answers one request: reads it within its limits, asks the player, and formats the answer. Every error has the shape that the
//! client knows from its vendor.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request as HttpRequest, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, UPGRADE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use stenograph::cassette::{Answer, Delivery, MatchMode, Played, PlayedAnswer, Request, Trouble, Vendor};

use crate::cassette::route::{Route, route, vendor};
use crate::cassette::stream::Frames;
use crate::cassette::{Pace, ServerEvent, Shared};
use crate::guard;
use crate::listen::ConnectionLoad;

/// The size limit of a request. The vendors accept half of it.
const BODY_SIZE_MAX: usize = 64 << 20;

/// How long a request may take to arrive.
const BODY_WAIT: Duration = Duration::from_secs(30);

const DRIFT: HeaderName = HeaderName::from_static("steno-drift");

/// A kind of error and its message.
type Refusal = (Trouble, String);

pub async fn answer(
    State(shared): State<Shared>,
    ConnectInfo(load): ConnectInfo<ConnectionLoad>,
    http_request: HttpRequest,
) -> Response {
    let busy = shared.busy(&load);
    let (parts, body) = http_request.into_parts();
    let path = parts.uri.path();
    let vendor = vendor(&parts.headers, path);
    let answered = match guard::refusal(&parts.headers, &parts.uri) {
        Some(why) => Err((Trouble::Forbidden, why.to_owned())),
        // On this error, an agent that prefers a web socket repeats the request without it.
        None if parts.headers.contains_key(UPGRADE) => {
            Err((Trouble::Upgrade, format!("{path} has no other protocol: use POST")))
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
            Route::Home => {
                Ok("{\"steno\":\"this server replays a recording; see /steno/drift for differences\"}".to_owned())
            }
            Route::WrongMethod => Err((Trouble::Method, format!("{} is not allowed for {path}", parts.method))),
            Route::Unknown => Err((Trouble::NotFound, format!("no such path: {path}"))),
        },
    };
    match answered {
        Ok(json) => respond(StatusCode::OK, json.into(), "application/json"),
        Err((trouble, message)) => {
            let rejected = ServerEvent::Rejected { status: trouble.status(), message: message.clone() };
            let _ = shared.report.send(rejected);
            error(vendor, trouble, &message)
        }
    }
}

/// Reads a request within the limits of size and time.
async fn read(headers: &HeaderMap, body: Body, vendor: Vendor) -> Result<Request, Refusal> {
    let too_large = || (Trouble::TooLarge, format!("a request may have at most {BODY_SIZE_MAX} bytes"));
    let stated = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > BODY_SIZE_MAX as u64) {
        return Err(too_large());
    }
    let bytes: Bytes = match tokio::time::timeout(BODY_WAIT, to_bytes(body, BODY_SIZE_MAX)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_limit(&error) => return Err(too_large()),
        Ok(Err(_)) => return Err((Trouble::Bad, "the request was cut off".to_owned())),
        Err(_) => {
            return Err((Trouble::TooSlow, format!("the request took more than {} seconds", BODY_WAIT.as_secs())));
        }
    };
    vendor.request(&bytes).map_err(|message| (Trouble::Bad, message))
}

/// Whether the size limit ended the read, and not the client.
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

/// Asks the player and sends its answer.
async fn play(shared: &Shared, vendor: Vendor, request: &Request, busy: crate::cassette::Busy) -> Response {
    let (played, formatted) = {
        let mut player = shared.player();
        let played = player.ask(request);
        let formatted = match played.verdict {
            PlayedAnswer::Answer(index) => {
                player.tape().answers().get(index).map(|answer| format_answer(vendor, answer, request))
            }
            // The server invents nothing that was not recorded: the answer is empty, and the agent continues.
            PlayedAnswer::SideRequest if player.match_mode() == MatchMode::Lenient => {
                Some(format_answer(vendor, &Answer::default(), request))
            }
            PlayedAnswer::SideRequest | PlayedAnswer::Refused(_) | PlayedAnswer::Ended => None,
        };
        (played, formatted)
    };
    let _ = shared.report.send(ServerEvent::Played(played.clone()));
    let response = match formatted {
        Some(Formatted::Whole(json, after_ms)) => {
            if shared.pace == Pace::AsRecorded {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
            }
            drop(busy);
            respond(StatusCode::OK, json.into(), "application/json")
        }
        Some(Formatted::Frames(frames)) => {
            let frames = Frames::new(frames, vendor, shared.pace, played.request, shared.report.clone(), busy);
            let mut response = respond(StatusCode::OK, Body::from_stream(frames), "text/event-stream; charset=utf-8");
            insert_header(&mut response, CACHE_CONTROL, "no-cache");
            response
        }
        Some(Formatted::Failed(status, json)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            respond(status, json.into(), "application/json")
        }
        None => {
            let (trouble, message) = refused(&played);
            error(vendor, trouble, &message)
        }
    };
    with_drift_headers(response, &played)
}

fn format_answer(vendor: Vendor, answer: &Answer, request: &Request) -> Formatted {
    if let Some(failed) = &answer.failed {
        return Formatted::Failed(failed.status, vendor.failure(failed));
    }
    match request.delivery {
        Delivery::Whole => {
            let after_ms = answer.blocks.iter().map(|block| block.after_ms).max().unwrap_or_default();
            Formatted::Whole(vendor.whole(answer, request), after_ms)
        }
        Delivery::Streamed | Delivery::StreamedWithUsage => Formatted::Frames(vendor.frames(answer, request)),
    }
}

/// An answer in a vendor's format.
enum Formatted {
    /// One object, and the delay between question and answer.
    Whole(String, u64),
    Frames(Vec<stenograph::cassette::StreamFrame>),
    /// The recorded error. The client may retry, as it did in the recording.
    Failed(u16, String),
}

/// Why the player has no answer.
fn refused(played: &Played) -> Refusal {
    match played.verdict {
        PlayedAnswer::SideRequest => {
            (Trouble::Drifted, "this request is not part of the recorded conversation".to_owned())
        }
        PlayedAnswer::Ended => (Trouble::Ended, "the recording has ended: it has no answer to this request".to_owned()),
        PlayedAnswer::Answer(_) | PlayedAnswer::Refused(_) => {
            let first = played.news.first().map_or_else(|| "as before".to_owned(), stenograph::cassette::Drift::line);
            let more = played.count.saturating_sub(1);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            (
                Trouble::Drifted,
                format!(
                    "this request differs from the recorded one: {first}{more}; see /steno/drift for all differences"
                ),
            )
        }
    }
}

/// Adds headers that state how many differences the request has.
fn with_drift_headers(mut response: Response, played: &Played) -> Response {
    let drift = if played.count == 0 { "none".to_owned() } else { played.count.to_string() };
    insert_header(&mut response, DRIFT, &drift);
    let id = format!("req_steno{:06}", played.request);
    insert_header(&mut response, HeaderName::from_static("request-id"), &id);
    insert_header(&mut response, HeaderName::from_static("x-request-id"), &id);
    response
}

fn one_model(shared: &Shared, vendor: Vendor, path: &str) -> Result<String, Refusal> {
    let name = path.split_once("/models/").map_or("", |(_, name)| name);
    let unknown = || (Trouble::NotFound, format!("the model {name} gives no answer in this recording"));
    vendor.model(shared.player().tape(), name).ok_or_else(unknown)
}

fn error(vendor: Vendor, trouble: Trouble, message: &str) -> Response {
    let status = StatusCode::from_u16(trouble.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(status, vendor.error(trouble, message).into(), "application/json");
    // Without this header, clients retry by themselves, and the player gives the same answer.
    insert_header(&mut response, HeaderName::from_static("x-should-retry"), "false");
    response
}

fn respond(status: StatusCode, body: Body, media: &str) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    insert_header(&mut response, CONTENT_TYPE, media);
    response
}

fn insert_header(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = value.parse() {
        response.headers_mut().insert(name, value);
    }
}
