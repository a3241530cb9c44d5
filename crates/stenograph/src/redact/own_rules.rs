//! Our own rules, beside those of gitleaks: what conversations with agents reveal that repositories do not.

use std::sync::OnceLock;

use super::check::Check;
use super::rule::{Certainty, FindingClass, Rule, Shape};

/// The rule of names that are masked wherever they occur.
pub(super) const USER_NAME: &str = "user-name";

/// The rule of private keys, whose lines are masked wherever they occur.
pub(super) const PRIVATE_KEY: &str = "private-key";

/// What may be between two lines of a key: line numbers, file names, marks of a diff or a quotation, quotes, commas.
const BETWEEN: &str = r"[^A-Za-z0-9+/=]{1,40}(?:[\w.:/-]{1,40}[^A-Za-z0-9+/=]{1,8}){0,2}";

/// All of them. The first group of a pattern is the secret, or else the whole match.
pub(super) fn all() -> Vec<Rule> {
    use Certainty::{Context, Form, Personal};
    use Shape::{Address, Assignment, Direct, Mail, Prefix};
    let one = |id, certainty: Certainty, shape, begins: &[&str], pattern: &str, check| Rule {
        id: std::borrow::Cow::Borrowed(id),
        class: if certainty == Personal { FindingClass::Personal } else { FindingClass::Secret },
        shape,
        certainty,
        begins: begins.iter().map(|&text| text.to_owned()).collect(),
        length: 0,
        is_solid: false,
        pattern: pattern.to_owned(),
        regex: OnceLock::new(),
        entropy_min: 0.0,
        group: None,
        allow: Vec::new(),
        check,
    };
    vec![
        // Output that was cut has the beginning of a key and not its end.
        one(
            PRIVATE_KEY,
            Form,
            Prefix,
            &["-----begin"],
            &format!(
                r"-----BEGIN[ A-Z0-9_-]{{0,100}}PRIVATE KEY(?: BLOCK)?-----(?:[\s>|]*[A-Z][A-Za-z-]{{2,20}}: [^\n]{{0,100}}\n)*(?:[\s>|]*[A-Za-z0-9+/]{{16,}}={{0,2}}|{BETWEEN}[A-Za-z0-9+/]{{32,}}={{0,2}})+(?:(?:{BETWEEN}=?[A-Za-z0-9+/=]{{1,80}})?(?:{BETWEEN})?-----END[ A-Z0-9_-]{{0,100}}-----|[\s>|]*=?[A-Za-z0-9+/=]{{1,80}})?"
            ),
            Check::None,
        ),
        Rule {
            length: 30,
            is_solid: true,
            ..one(
                "jwt",
                Form,
                Prefix,
                &["eyj"],
                r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{8,})?",
                Check::None,
            )
        },
        one(
            "connection-string",
            Context,
            Address,
            &["://"],
            r#"://[^\s/:@'"<>\\]{0,64}:([^\s/'"<>\\]{3,200})@[A-Za-z0-9\[_.-]"#,
            Check::Password,
        ),
        one(
            "authorization-header",
            Context,
            Prefix,
            &["authorization"],
            r#"(?i)authorization['"]?\s{0,3}[:=,]\s{0,3}['"]?([\w.~+/=-]{8,4096})"#,
            Check::Random,
        ),
        one(
            "authorization-scheme",
            Context,
            Prefix,
            &["authorization"],
            r#"(?i)authorization['"]?\s{0,3}[:=,]\s{0,3}['"]?(?:bearer|basic|token|digest|apikey|negotiate)\s{1,3}([\w.~+/=-]{8,4096})"#,
            Check::Credential,
        ),
        one(
            "cookie",
            Context,
            Prefix,
            &["set-cookie"],
            r#"(?i)set-cookie['"]?\s{0,3}[:=,]\s{0,3}['"]?[\w.-]{1,64}=([\w.~+/=%-]{12,4096})"#,
            Check::Credential,
        ),
        one(
            "netrc",
            Context,
            Prefix,
            &["machine "],
            r"machine\s{1,8}\S{1,256}\s{1,8}(?:login\s{1,8}\S{1,256}\s{1,8})?password\s{1,8}(\S{4,256})",
            Check::Password,
        ),
        one(
            "database-option",
            Context,
            Prefix,
            &["mysql ", "mysqldump ", "mysqladmin "],
            r#"mysql(?:dump|admin)? (?:[^\s'"|;&]{1,80} ){0,8}?-p([^\s'"\x60|;&]{4,255})"#,
            Check::Password,
        ),
        one(
            "webhook",
            Form,
            Prefix,
            &[".com/api/webhooks/"],
            r"\.com/api/webhooks/[0-9]{1,24}/([\w-]{40,100})",
            Check::None,
        ),
        one("bearer-token", Context, Prefix, &["bearer "], r"(?i)bearer\s{1,3}([\w.~+/=-]{16,4096})", Check::Random),
        one(
            "api-key-header",
            Context,
            Prefix,
            &["x-api-key", "x-auth-token", "x-goog-api-key", "x-access-token"],
            r#"(?i)x-(?:goog-api|api|auth|access)-(?:key|token)['"]?\s{0,3}[:=,]\s{0,3}['"]?([\w.~+/=-]{8,4096})"#,
            Check::Random,
        ),
        one(
            "secret-assignment",
            Context,
            Assignment,
            &["key", "token", "secret", "password", "passwd", "passphrase", "_pass", "pwd", "credential"],
            r#"(?i)(?:key|token|secret|password|passwd|passphrase|_pass|pwd|credentials?)(?:[_-][a-z0-9]{1,12})?['"]?\s{0,3}(?::=|=>|=|:)\s{0,3}['"\x60]?([^\s'"\x60,;()\[\]{}<>\\]{6,256})"#,
            Check::Assignment,
        ),
        one(
            "secret-option",
            Context,
            Prefix,
            &["--password", "--passwd", "--token", "--api-key", "--secret", "sshpass -p"],
            r#"(?i)(?:--(?:password|passwd|token|api-key|secret)[\s=]{1,3}|sshpass -p ?)['"]?([^\s'"\x60,;()<>$\\-][^\s'"\x60]{5,255})"#,
            Check::Random,
        ),
        one(
            "e-mail",
            Personal,
            Mail,
            &["@"],
            r"[A-Za-z0-9._+-]{1,64}@[A-Za-z](?:[A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}\b",
            Check::Mail,
        ),
        one(
            "home-folder",
            Personal,
            Direct,
            &["/home/", "/users/", "\\users\\", "-home-", "-users-"],
            r"\\Users\\{1,8}([\w.\x80-\xff-]{1,32}(?: [\w.\x80-\xff-]{1,32}){1,3})\\|(?:/home/|/Users/|\\Users\\{1,8})([A-Za-z0-9._\x80-\xff][\w.\x80-\xff-]{0,63})|(?:-home-|-Users-)([A-Za-z0-9_]{1,64})",
            Check::UserName,
        ),
    ]
}
