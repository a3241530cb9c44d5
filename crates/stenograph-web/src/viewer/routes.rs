//! The one table of routes: the server finds requests in it, and the OpenAPI document is made from it.

use axum::http::Method;

use super::address::decoded;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerRoute {
    Overview,
    OverviewRuns,
    OverviewUsage,
    Sessions,
    Session,
    SessionEvents,
    SessionContents,
    SessionLanes,
    SessionChanges,
    SessionConvert,
    SessionDownload,
    SessionMarks,
    Compare,
    Usage,
    Palette,
    Live,
    Asset,
    Login,
    LoginForm,
    ApiSessions,
    ApiSession,
    ApiEvents,
    ApiContents,
    ApiMarks,
    ApiCompare,
    ApiSearch,
    ApiRuns,
    ApiUsage,
    ApiLive,
    OpenApi,
}

/// Which requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Only requests with the token.
    Token,
    /// Everybody on this machine: it says nothing about sessions.
    Public,
}

/// A route.
#[derive(Clone, Copy, Debug)]
pub struct RouteInfo {
    pub route: ViewerRoute,
    pub method: &'static str,
    /// The path; a segment in braces is a name.
    pub path: &'static str,
    pub access: RouteAccess,
    /// The description for programs. Pages for people have none.
    pub api: Option<ApiInfo>,
}

/// A route for programs.
#[derive(Clone, Copy, Debug)]
pub struct ApiInfo {
    pub summary: &'static str,
    pub params: &'static [Param],
    /// The name of the answer's schema; `None` for a stream of server-sent events.
    pub answer: Option<&'static str>,
}

/// A parameter of a route for programs.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub about: &'static str,
}

/// The kind of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    Text,
    Number,
}

const QUERY: Param = Param { name: "q", kind: ParamKind::Text, about: "A query in the language of steno find" };
const CURSOR: Param = Param { name: "cursor", kind: ParamKind::Text, about: "The value of next in an earlier answer" };
const LIMIT: Param = Param { name: "limit", kind: ParamKind::Number, about: "The most items of one answer" };
const AGENT: Param = Param { name: "agent", kind: ParamKind::Text, about: "The sub-agent whose conversation is meant" };

const fn page(route: ViewerRoute, path: &'static str) -> RouteInfo {
    RouteInfo { route, method: "GET", path, access: RouteAccess::Token, api: None }
}

const fn public(route: ViewerRoute, method: &'static str, path: &'static str) -> RouteInfo {
    RouteInfo { route, method, path, access: RouteAccess::Public, api: None }
}

const fn api(route: ViewerRoute, path: &'static str, api: ApiInfo) -> RouteInfo {
    RouteInfo { route, method: "GET", path, access: RouteAccess::Token, api: Some(api) }
}

/// All routes.
pub const ROUTES: &[RouteInfo] = &[
    page(ViewerRoute::Overview, "/"),
    page(ViewerRoute::OverviewRuns, "/overview/runs"),
    page(ViewerRoute::OverviewUsage, "/overview/usage"),
    page(ViewerRoute::Sessions, "/sessions"),
    page(ViewerRoute::Session, "/sessions/{session}"),
    page(ViewerRoute::SessionEvents, "/sessions/{session}/events"),
    page(ViewerRoute::SessionContents, "/sessions/{session}/contents"),
    page(ViewerRoute::SessionLanes, "/sessions/{session}/lanes"),
    page(ViewerRoute::SessionChanges, "/sessions/{session}/changes"),
    page(ViewerRoute::SessionConvert, "/sessions/{session}/convert"),
    page(ViewerRoute::SessionDownload, "/sessions/{session}/download"),
    RouteInfo {
        route: ViewerRoute::SessionMarks,
        method: "POST",
        path: "/sessions/{session}/marks",
        access: RouteAccess::Token,
        api: None,
    },
    page(ViewerRoute::Compare, "/compare"),
    page(ViewerRoute::Usage, "/usage"),
    page(ViewerRoute::Palette, "/palette"),
    page(ViewerRoute::Live, "/live"),
    public(ViewerRoute::Asset, "GET", "/assets/{asset}"),
    public(ViewerRoute::Login, "GET", "/login/{code}"),
    public(ViewerRoute::LoginForm, "POST", "/login"),
    api(
        ViewerRoute::ApiSessions,
        "/api/sessions",
        ApiInfo {
            summary: "The sessions that match a query",
            params: &[
                QUERY,
                Param { name: "sort", kind: ParamKind::Text, about: "newest, oldest, largest, longest or errors" },
                CURSOR,
                LIMIT,
            ],
            answer: Some("Sessions"),
        },
    ),
    api(
        ViewerRoute::ApiSession,
        "/api/sessions/{session}",
        ApiInfo { summary: "One session and its sub-agents", params: &[], answer: Some("SessionDetails") },
    ),
    api(
        ViewerRoute::ApiEvents,
        "/api/sessions/{session}/events",
        ApiInfo {
            summary: "The events of a session in the native format, by number",
            params: &[AGENT, CURSOR, LIMIT],
            answer: Some("Events"),
        },
    ),
    api(
        ViewerRoute::ApiContents,
        "/api/sessions/{session}/contents",
        ApiInfo {
            summary: "The contents of a session: prompts, failures, compactions, files, plan and context",
            params: &[AGENT],
            answer: Some("Contents"),
        },
    ),
    RouteInfo {
        method: "POST",
        ..api(
            ViewerRoute::ApiMarks,
            "/api/sessions/{session}/marks",
            ApiInfo {
                summary: "Change the marks of a session; the parameters are the fields of a form in the body",
                params: &[
                    Param { name: "pin", kind: ParamKind::Text, about: "yes or no" },
                    Param { name: "title", kind: ParamKind::Text, about: "A title; - removes the given one" },
                    Param { name: "tag", kind: ParamKind::Text, about: "A tag to add" },
                    Param { name: "untag", kind: ParamKind::Text, about: "A tag to remove" },
                    Param { name: "note", kind: ParamKind::Text, about: "A note to add" },
                    Param {
                        name: "event",
                        kind: ParamKind::Number,
                        about: "The number of the event that the note is about",
                    },
                    AGENT,
                    Param { name: "remove_note", kind: ParamKind::Number, about: "The number of a note to remove" },
                ],
                answer: Some("SessionDetails"),
            },
        )
    },
    api(
        ViewerRoute::ApiCompare,
        "/api/compare",
        ApiInfo {
            summary: "Two sessions, aligned by content: equal, moved, changed and missing steps, in order",
            params: &[
                Param { name: "a", kind: ParamKind::Text, about: "The first session" },
                Param { name: "b", kind: ParamKind::Text, about: "The second session" },
                Param { name: "agent_a", kind: ParamKind::Text, about: "The sub-agent of the first session" },
                Param { name: "agent_b", kind: ParamKind::Text, about: "The sub-agent of the second session" },
                CURSOR,
                LIMIT,
            ],
            answer: Some("Comparison"),
        },
    ),
    api(
        ViewerRoute::ApiSearch,
        "/api/search",
        ApiInfo {
            summary: "The events of all sessions that match a query, best first",
            params: &[QUERY, Param { name: "order", kind: ParamKind::Text, about: "best or newest" }, CURSOR, LIMIT],
            answer: Some("Hits"),
        },
    ),
    api(
        ViewerRoute::ApiRuns,
        "/api/runs",
        ApiInfo { summary: "The agents of the last day, and what they need", params: &[], answer: Some("Runs") },
    ),
    api(
        ViewerRoute::ApiUsage,
        "/api/usage",
        ApiInfo {
            summary: "Model calls, tokens and cost, in groups",
            params: &[
                Param {
                    name: "by",
                    kind: ParamKind::Text,
                    about: "day, week, month, model, project, agent or session",
                },
                Param {
                    name: "q",
                    kind: ParamKind::Text,
                    about: "A query about sessions: agent:, project:, model:, session:, since:, until:",
                },
            ],
            answer: Some("Usage"),
        },
    ),
    api(
        ViewerRoute::ApiLive,
        "/api/live",
        ApiInfo {
            summary: "Changes as server-sent events: index, and grown for the session that is named",
            params: &[Param { name: "session", kind: ParamKind::Text, about: "The session to follow" }, AGENT],
            answer: None,
        },
    ),
    api(
        ViewerRoute::OpenApi,
        "/api/openapi.json",
        ApiInfo { summary: "This document", params: &[], answer: Some("OpenApi") },
    ),
];

/// A request that has a route: the route, and the names in its path.
#[derive(Clone, Debug)]
pub struct Routed {
    pub info: &'static RouteInfo,
    pub names: Vec<String>,
}

/// Why no route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrouted {
    /// No route has this path.
    Path,
    /// The path exists, with another method.
    Method,
}

/// The route of a request.
pub fn find(method: &Method, path: &str) -> Result<Routed, Unrouted> {
    let mut unrouted = Unrouted::Path;
    for info in ROUTES {
        let Some(names) = names(info.path, path) else { continue };
        let is_allowed = method.as_str() == info.method || method == Method::HEAD && info.method == "GET";
        if is_allowed {
            return Ok(Routed { info, names });
        }
        unrouted = Unrouted::Method;
    }
    Err(unrouted)
}

/// The methods that a path accepts.
pub fn allowed(path: &str) -> String {
    let methods = ROUTES.iter().filter(|info| names(info.path, path).is_some()).map(|info| match info.method {
        "GET" => "GET, HEAD",
        other => other,
    });
    methods.collect::<Vec<_>>().join(", ")
}

/// The names in a path, if it has the form of the pattern.
fn names(pattern: &str, path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let (mut parts, mut wanted) = (path.split('/'), pattern.split('/'));
    loop {
        match (parts.next(), wanted.next()) {
            (None, None) => return Some(names),
            (Some(part), Some(wanted)) if wanted.starts_with('{') && !part.is_empty() => names.push(decoded(part)),
            (Some(part), Some(wanted)) if part == wanted => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_names_lead_to_a_route() {
        let found = find(&Method::GET, "/sessions/a%2Fb/events").unwrap();
        assert_eq!((found.info.route, found.names), (ViewerRoute::SessionEvents, vec!["a/b".to_owned()]));
        assert_eq!(find(&Method::HEAD, "/").unwrap().info.route, ViewerRoute::Overview);
    }

    #[test]
    fn an_unknown_path_and_a_wrong_method_differ() {
        for path in ["", "//", "/x", "/sessions/", "/sessions/a/b", "/assets/../x/y", "/api", "/Sessions"] {
            assert_eq!(find(&Method::GET, path).unwrap_err(), Unrouted::Path, "{path}");
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE] {
            assert_eq!(find(&method, "/sessions").unwrap_err(), Unrouted::Method, "{method}");
        }
        assert_eq!(find(&Method::GET, "/login").unwrap_err(), Unrouted::Method);
    }
}
