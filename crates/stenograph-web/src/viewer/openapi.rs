//! The OpenAPI document of the interface for programs, made from the table of routes.

use serde_json::{Map, Value, json};

use super::routes::{ApiInfo, ParamKind, ROUTES, RouteInfo};

/// The schemas of the answers.
const SCHEMAS: &str = include_str!("../../assets/schemas.json");

/// The document, as JSON.
pub fn openapi() -> String {
    let mut paths = Map::new();
    for route in ROUTES {
        if let Some(api) = &route.api {
            paths.insert(route.path.to_owned(), json!({ route.method.to_lowercase(): operation(route, api) }));
        }
    }
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stenograph",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The sessions of AI agents on this machine. steno serve answers on this machine only, unless it is told to listen elsewhere. Every request needs the token that steno serve --json prints. Only the marks of sessions can be changed.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn operation(route: &RouteInfo, api: &ApiInfo) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = api.params.iter().map(|param| {
        let schema = match param.kind {
            ParamKind::Text => json!({ "type": "string" }),
            ParamKind::Number => json!({ "type": "integer", "minimum": 1 }),
        };
        json!({ "name": param.name, "in": "query", "description": param.about, "schema": schema })
    });
    let content = match api.answer {
        Some(schema) => {
            json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
        }
        None => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
    };
    let problem = |about: &str| json!({ "description": about, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } } });
    json!({
        "operationId": format!("{:?}", route.route),
        "summary": api.summary,
        "parameters": in_path.chain(in_query).collect::<Vec<Value>>(),
        "responses": {
            "200": { "description": "The answer", "content": content },
            "400": problem("A parameter is wrong"),
            "401": problem("The token is missing or wrong"),
            "404": problem("No such session"),
        },
    })
}
