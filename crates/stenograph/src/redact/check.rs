//! What else must be true of a match of our own rules. Each check looks at the text around a match; none searches.

use super::mask;
use super::rule::{RuleMatch, entropy};
use super::rules::Rules;
use crate::formats::FORMATS;

/// A condition on a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// None of the allow lists that apply to all rules of gitleaks takes it.
    Gitleaks,
    None,
    /// It is not a placeholder.
    Password,
    /// It looks random.
    Random,
    /// It follows the name of a scheme, such as `Bearer`, and is no word.
    Credential,
    /// It is assigned to a name that says what it is.
    Assignment,
    /// It is a person's address.
    Mail,
    /// It is a person's name.
    UserName,
}

impl Check {
    pub fn accepts(self, text: &[u8], found: &RuleMatch) -> bool {
        let secret = text.get(found.secret.clone()).unwrap_or_default();
        match self {
            Check::None => true,
            Check::Gitleaks => !Rules::built_in().allow.iter().any(|list| list.allows(text, found)),
            Check::Password => !is_placeholder(secret),
            Check::Random => is_random(secret) && !is_placeholder(secret),
            Check::Credential => is_credential(secret) && !is_placeholder(secret),
            Check::Assignment => is_assignment(text, found, secret),
            Check::Mail => is_personal_mail(secret),
            Check::UserName => is_user_name(secret),
        }
    }
}

/// Words in values that replace a secret, unless the rest of the value looks like one.
const PLACEHOLDERS: [&[u8]; 9] =
    [b"example", b"changeme", b"change_me", b"change-me", b"your", b"placeholder", b"xxxx", b"dummy", b"undefined"];

/// What stands only in code, in templates and in what was masked before.
const CODE: [&[u8]; 13] = [
    b"redacted",
    b"****",
    b"${",
    b"{{",
    b"...",
    b"process.env",
    b"environ",
    b"getenv",
    b"secrets.",
    b"<",
    b">",
    b"config.",
    b"self.",
];

/// Values that replace a password.
const PLACEHOLDER_VALUES: [&[u8]; 12] = [
    b"password",
    b"passwd",
    b"pass",
    b"secret",
    b"token",
    b"string",
    b"true",
    b"false",
    b"null",
    b"none",
    b"key",
    b"required",
];

fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let has_both = |bytes: &[u8]| bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic);
    let is_variable = match lower.as_slice() {
        // `$NAME` and `$name`, but not `$ecret99`.
        [b'$', name @ ..] => !has_both(name) || !value.iter().any(u8::is_ascii_lowercase),
        // `%s`, `%(name)s` and `%NAME%`, but not `%24ecret`.
        [b'%', rest @ ..] => !rest.first().is_some_and(u8::is_ascii_digit),
        [b'*', b'*', ..] | [b'{' | b'[' | b'<', ..] => true,
        _ => false,
    };
    let has_placeholder = |word: &&[u8]| {
        memchr::memmem::find(&lower, word).is_some_and(|at| {
            let (before, after) =
                (lower.get(..at).unwrap_or_default(), lower.get(at + word.len()..).unwrap_or_default());
            !has_both(&[before, after].concat())
        })
    };
    let first = lower.first().copied().unwrap_or_default();
    is_variable
        || lower.iter().all(|byte| *byte == first)
        || PLACEHOLDER_VALUES.contains(&lower.as_slice())
        || CODE.iter().any(|word| memchr::memmem::find(&lower, word).is_some())
        || PLACEHOLDERS.iter().any(has_placeholder)
}

/// Bits for each byte: prose and names have fewer.
const RANDOM_ENTROPY_MIN: f64 = 2.8;

pub(super) fn is_random(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && entropy(value) >= RANDOM_ENTROPY_MIN
}

/// The shortest credential that needs no digit and no capital.
const CREDENTIAL_LENGTH_MIN: usize = 20;

fn is_credential(value: &[u8]) -> bool {
    is_random(value) || has_mixed_case(value) || value.len() >= CREDENTIAL_LENGTH_MIN
}

/// Whether a value mixes capitals and small letters as no name in code does.
fn has_mixed_case(value: &[u8]) -> bool {
    let count = |test: fn(&u8) -> bool| value.iter().filter(|byte| test(byte)).count();
    let (capitals, small) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    value.len() >= 8 && capitals * 4 >= value.len() && small * 4 >= value.len()
}

/// `API_KEY=value`: a name in capitals, as in an environment file, needs less proof than `key: value` in code.
fn is_assignment(text: &[u8], found: &RuleMatch, secret: &[u8]) -> bool {
    if is_placeholder(secret) {
        return false;
    }
    let before = text.get(..found.whole.start).unwrap_or_default();
    let prefix = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let prefix: Vec<u8> = prefix.take(64).copied().collect();
    let name = text.get(found.whole.start..found.secret.start).unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let is_capital = |bytes: &[u8]| bytes.iter().all(|byte| !byte.is_ascii_lowercase());
    let is_shell = is_capital(&prefix) && is_capital(name) && memchr::memchr(b'=', name).is_some();
    let is_code =
        secret.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'-' | b':' | b'/'));
    // A key alone may be anything: `key: item-12`. With a word before it, it is a credential.
    if lower.starts_with(b"key") {
        let word: Vec<u8> = prefix.iter().rev().copied().collect::<Vec<u8>>().to_ascii_lowercase();
        let is_credential =
            [&b"api"[..], b"secret", b"access", b"private", b"auth", b"encryption", b"signing", b"master"];
        let word = word.strip_suffix(b"_").or(word.strip_suffix(b"-")).unwrap_or(&word);
        let named = is_credential.iter().any(|credential| word.ends_with(credential));
        return if is_shell && prefix.first() == Some(&b'_') { !is_code || named } else { named && is_random(secret) };
    }
    let is_password = [&b"pass"[..], b"_pass", b"pwd"].iter().any(|word| lower.starts_with(word));
    // What follows in an address is a value and no code: `?password=value`.
    let is_in_address = is_password && matches!(before.last(), Some(b'?' | b'&'));
    if is_shell || is_in_address {
        return true;
    }
    if is_password { !is_code || has_mixed_case(secret) } else { is_random(secret) && secret.len() >= 10 }
}

/// Names of accounts that are not people, and domains for examples.
const MAIL_NAMES: [&[u8]; 10] =
    [b"git", b"noreply", b"no-reply", b"donotreply", b"root", b"user", b"users.noreply", b"postmaster", b"hg", b"svn"];
const MAIL_DOMAINS: [&[u8]; 6] =
    [b"example.com", b"example.org", b"example.net", b"example", b"users.noreply.github.com", b"localhost"];

/// Last parts of file names, which look like top-level domains: `logo@2x.png`, `lib@1.x.js`.
const FILE_ENDINGS: [&[u8]; 20] = [
    b"js", b"ts", b"png", b"jpg", b"svg", b"json", b"css", b"html", b"md", b"rs", b"py", b"go", b"tgz", b"gz", b"tsx",
    b"jsx", b"mjs", b"service", b"so", b"dev0",
];

fn is_personal_mail(address: &[u8]) -> bool {
    let lower = address.to_ascii_lowercase();
    let Some(at) = memchr::memchr(b'@', &lower) else { return false };
    let (name, domain) = (lower.get(..at).unwrap_or_default(), lower.get(at + 1..).unwrap_or_default());
    let ending = domain.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let is_example = MAIL_DOMAINS
        .iter()
        .any(|known| domain == *known || domain.strip_suffix(*known).is_some_and(|before| before.ends_with(b".")));
    !is_example && !MAIL_NAMES.contains(&name) && !name.ends_with(b"noreply") && !FILE_ENDINGS.contains(&ending)
}

/// Names of home folders that belong to nobody.
const COMMON_NAMES: [&[u8]; 26] = [
    b"user",
    b"users",
    b"username",
    b"you",
    b"me",
    b"name",
    b"ubuntu",
    b"runner",
    b"node",
    b"vscode",
    b"root",
    b"shared",
    b"public",
    b"default",
    b"admin",
    b"app",
    b"linuxbrew",
    b"ec2-user",
    b"circleci",
    b"jovyan",
    b"work",
    b"test",
    b"home",
    b"build",
    b"agent",
    b"your",
];

pub(super) fn is_user_name(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    !COMMON_NAMES.contains(&lower.as_slice()) && !mask::is_user_mask(name) && !lower.starts_with(b"your")
}

/// Words of agents and of conversations that may be the name of a home folder. Conversations are full of them, so such a name is
/// masked only in paths.
const COMMON_WORDS: [&str; 11] = [
    "assistant",
    "claude",
    "content",
    "cursor",
    "developer",
    "gemini",
    "message",
    "system",
    "text",
    "thinking",
    "tool",
];

pub(super) fn is_common_word(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    COMMON_WORDS.contains(&lower.as_str()) || FORMATS.iter().any(|format| format.info().agent == lower)
}
