//! Answers one request: admits it, finds its route, and lets a thread that may wait for the disk make the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ALLOW, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tokio::sync::{Semaphore, mpsc};

use super::ViewerEvent;
use super::address::Params;
use super::admit::{self, Hosts, Refusal};
use super::respond::{HTML, JSON, problem_json, respond, set};
use super::routes::{self, RouteAccess, Routed, Unrouted, ViewerRoute};
use super::state::Viewer;
use super::token::{LoginCode, Token};
use super::trouble::AnswerProblem;
use super::{api, assets, live, pages};
use crate::listen::{ConnectionLoad, InFlight};

/// The size limit of a form: a token, or a note.
const FORM_SIZE_MAX: usize = 64 << 10;

/// How long a form may take to arrive.
const FORM_WAIT: Duration = Duration::from_secs(5);

/// How many pages can wait for changes at the same time.
const STREAMS_MAX: usize = 64;

/// The longest address that is answered.
const URI_LENGTH_MAX: usize = 16 << 10;

/// What all requests share.
#[derive(Clone)]
pub struct Server {
    viewer: Arc<Viewer>,
    hosts: Arc<Hosts>,
    address: SocketAddr,
    token: Token,
    code: Arc<LoginCode>,
    report: mpsc::UnboundedSender<ViewerEvent>,
    streams: Arc<Semaphore>,
}

/// An answer of a page or of the interface for programs.
pub struct PageAnswer {
    pub status: StatusCode,
    pub media: String,
    pub body: Body,
    /// The name of the file, if the browser should save it.
    pub file: Option<String>,
    /// The page to go to, after a change.
    pub location: Option<String>,
}

impl PageAnswer {
    pub fn html(body: String) -> PageAnswer {
        PageAnswer { status: StatusCode::OK, media: HTML.to_owned(), body: body.into(), file: None, location: None }
    }

    pub fn json(body: String) -> PageAnswer {
        PageAnswer { status: StatusCode::OK, media: JSON.to_owned(), body: body.into(), file: None, location: None }
    }
}

impl Server {
    pub fn new(
        viewer: Viewer,
        address: SocketAddr,
        token: Token,
        code: LoginCode,
        report: mpsc::UnboundedSender<ViewerEvent>,
    ) -> Server {
        Server {
            viewer: Arc::new(viewer),
            hosts: Arc::new(Hosts::of(address)),
            address,
            token,
            code: Arc::new(code),
            report,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// The link that opens the viewer in one browser, once.
    pub fn link(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}/login/{}", self.code.current().reveal())
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        let Refusal { status, message } = refusal;
        let _ = self.report.send(ViewerEvent::Refused { status: status.as_u16(), message: message.to_owned() });
        problem_json(status, message, None)
    }

    /// Gives a browser its cookie. The page that follows is opened by this one, because a browser sends the cookie only where one
    /// of our own pages leads.
    fn welcome(&self) -> Response {
        let _ = self.report.send(ViewerEvent::LinkUsed { link: self.link() });
        let mut response = respond(StatusCode::OK, pages::welcome(), HTML);
        set(&mut response, SET_COOKIE, &self.token.set_cookie(self.address.port()));
        response
    }

    fn login_form(&self, form: &Params) -> Response {
        match form.value("token").is_some_and(|token| self.token.is(token.trim())) {
            true => self.welcome(),
            false => {
                respond(StatusCode::UNAUTHORIZED, pages::login(Some("That is not the token of this server.")), HTML)
            }
        }
    }
}

pub async fn answer(
    State(server): State<Server>,
    ConnectInfo(load): ConnectInfo<ConnectionLoad>,
    request: Request,
) -> Response {
    let in_flight = load.begin_request();
    let (parts, body) = request.into_parts();
    if let Err(refusal) = admit::check_sender(&server.hosts, &parts.headers, &parts.uri) {
        return server.refuse(refusal);
    }
    let (method, path) = (parts.method, parts.uri.path());
    if path.len() + parts.uri.query().map_or(0, str::len) > URI_LENGTH_MAX {
        return problem_json(StatusCode::URI_TOO_LONG, "the address is too long", None);
    }
    let proof = server.token.proof(&parts.headers, server.address.port());
    let Routed { info, names } = match routes::find(&method, path) {
        Ok(routed) => routed,
        // Without the token, nobody learns which paths exist.
        Err(_) if proof.is_none() => return unauthorized(path),
        Err(Unrouted::Path) => {
            let trouble = AnswerProblem::not_found("no such page");
            return problem(&server.viewer, &trouble, path);
        }
        Err(Unrouted::Method) => {
            let mut response = problem_json(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here", None);
            set(&mut response, ALLOW, &routes::allowed(path));
            return response;
        }
    };
    let name = names.first().map_or("", String::as_str);
    // Everybody may have the files of the sign-in page; other names are refused like other paths.
    let is_public = info.access == RouteAccess::Public && (info.route != ViewerRoute::Asset || assets::is_known(name));
    if !is_public && proof.is_none() {
        return unauthorized(path);
    }
    if let Err(refusal) = admit::check_change(&parts.headers, &method, proof) {
        return server.refuse(refusal);
    }
    let params = match method == Method::POST {
        true => match tokio::time::timeout(FORM_WAIT, to_bytes(body, FORM_SIZE_MAX)).await {
            Ok(Ok(bytes)) => Params::form(&String::from_utf8_lossy(&bytes)),
            _ => return problem_json(StatusCode::BAD_REQUEST, "the form cannot be read", None),
        },
        false => Params::parse(parts.uri.query().unwrap_or_default()),
    };
    match info.route {
        ViewerRoute::Asset => assets::answer(names.first().map_or("", String::as_str), &parts.headers),
        // Only a request that reads the answer uses up the code.
        ViewerRoute::Login if method == Method::GET && names.first().is_some_and(|code| server.code.redeem(code)) => {
            server.welcome()
        }
        ViewerRoute::Login => {
            let used = "This link was used before, or is not of this server. The terminal shows the current one.";
            respond(StatusCode::UNAUTHORIZED, pages::login(Some(used)), HTML)
        }
        ViewerRoute::LoginForm => server.login_form(&params),
        ViewerRoute::Live | ViewerRoute::ApiLive => follow(&server, &params, in_flight),
        route => {
            let (path, viewer) = (path.to_owned(), Arc::clone(&server.viewer));
            let made = tokio::task::spawn_blocking(move || match info.api {
                Some(_) => api::answer(&viewer, route, &names, &params),
                None => pages::answer(&viewer, route, &names, &params),
            });
            match made.await {
                Ok(Ok(answer)) => finish(answer),
                Ok(Err(trouble)) => problem(&server.viewer, &trouble, &path),
                Err(_) => problem(
                    &server.viewer,
                    &AnswerProblem {
                        status: StatusCode::INTERNAL_SERVER_ERROR,
                        message: "this answer failed; the rest of the server works".to_owned(),
                        hint: None,
                    },
                    &path,
                ),
            }
        }
    }
}

/// Opens a stream of changes, if there is a free place for one.
fn follow(server: &Server, params: &Params, in_flight: InFlight) -> Response {
    match Arc::clone(&server.streams).try_acquire_owned() {
        Ok(permit) => live::stream(&server.viewer, params, (permit, in_flight)),
        Err(_) => problem_json(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open", Some("close some of them")),
    }
}

fn finish(answer: PageAnswer) -> Response {
    let mut response = respond(answer.status, answer.body, &answer.media);
    if let Some(location) = answer.location {
        set(&mut response, axum::http::header::LOCATION, &location);
    }
    if let Some(file) = answer.file {
        let disposition = format!("attachment; filename=\"{file}\"");
        set(&mut response, axum::http::header::CONTENT_DISPOSITION, &disposition);
    }
    response
}

/// Whether a program asks, which reads JSON.
fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path == "/live"
}

fn unauthorized(path: &str) -> Response {
    const HINT: &str = "send the header Authorization: Bearer TOKEN; steno serve --json prints the token";
    let mut response = match is_api(path) {
        true => problem_json(StatusCode::UNAUTHORIZED, "the token is missing or wrong", Some(HINT)),
        false => respond(StatusCode::UNAUTHORIZED, pages::login(None), HTML),
    };
    set(&mut response, WWW_AUTHENTICATE, "Bearer");
    response
}

fn problem(viewer: &Viewer, trouble: &AnswerProblem, path: &str) -> Response {
    match is_api(path) {
        true => problem_json(trouble.status, &viewer.masked(&trouble.message), trouble.hint.as_deref()),
        false => respond(trouble.status, pages::problem(viewer, trouble), HTML),
    }
}
