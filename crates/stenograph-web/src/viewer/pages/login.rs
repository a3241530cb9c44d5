//! The pages before a browser is admitted. They say nothing about sessions.

use super::super::html::{document, text};

/// Asks for the token.
pub fn login(problem: Option<&str>) -> String {
    let problem =
        problem.map(|problem| format!("<p role=\"alert\" class=\"alert\">{}</p>", text(problem))).unwrap_or_default();
    document(
        "Sign in",
        "login",
        &format!(
            "<main id=\"main\" class=\"login\"><h1>Stenograph</h1>{problem}<p>Open the link that <code>steno serve</code> shows in the \
             terminal, or enter the token of this server.</p><form method=\"post\" action=\"/login\"><label for=\"token\">Token</label>\
             <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"off\" required><button>Sign in</button></form></main>"
        ),
    )
}

/// Leads to the overview. The browser forgets this page, whose address has a code in it.
pub fn welcome() -> String {
    let body = "<main id=\"main\" class=\"login\"><p><a href=\"/\">Go to the overview</a></p></main>";
    let refresh = "<meta http-equiv=\"refresh\" content=\"0;url=/\"></head>";
    document("Welcome", "welcome", body).replacen("</head>", refresh, 1)
}
