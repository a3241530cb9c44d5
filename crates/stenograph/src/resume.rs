//! The shell command that resumes a session: [`crate::format::FormatInfo::resume`] with its placeholders filled in and quoted.
//! This module runs nothing. Ids and paths come from transcripts, whose authors may try to inject another command.

/// The values that fill the placeholders of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeTarget<'a> {
    /// The session's id.
    pub session: Option<&'a str>,
    /// The path of the source.
    pub file: Option<&'a str>,
    /// The folder in which the agent worked, if known.
    pub folder: Option<&'a str>,
}

/// The shell whose syntax a command line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// POSIX shells; fish understands the same syntax.
    Sh,
    /// PowerShell, on any system.
    PowerShell,
    /// The command prompt of Windows.
    Cmd,
}

/// The reason why there is no command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The command needs a value that is unknown.
    #[error("the {0} is unknown")]
    Missing(&'static str),
    /// No agent uses such an id, and a shell might read it as something else.
    #[error("the session id is unsafe on a command line")]
    BadSession,
    /// The path has characters that a command line cannot hold, or that disguise the path.
    #[error("the path has characters that are unsafe on a command line")]
    BadPath,
}

/// The longest id accepted.
const SESSION_LENGTH_MAX: usize = 200;

/// The command line that resumes the session: it changes to the folder, if that is known, and then runs the command.
pub fn line(template: &str, session: &ResumeTarget<'_>, shell: Shell) -> Result<String, Refused> {
    let mut words: Vec<String> = Vec::new();
    for word in template.split(' ').filter(|word| !word.is_empty()) {
        words.push(match word {
            "{session}" => id(session.session.ok_or(Refused::Missing("session id"))?)?.to_owned(),
            "{file}" => path(session.file.ok_or(Refused::Missing("file"))?, shell)?,
            word => word.to_owned(),
        });
    }
    let command = words.join(" ");
    let Some(folder) = session.folder else { return Ok(command) };
    let folder = path(folder, shell)?;
    Ok(match shell {
        Shell::Sh => format!("cd {folder} && {command}"),
        // Windows PowerShell 5 has no `&&`.
        Shell::PowerShell => format!("Set-Location -LiteralPath {folder}; if ($?) {{ {command} }}"),
        Shell::Cmd => format!("cd /d {folder} && {command}"),
    })
}

/// Checks an id. An id that needs quotes is refused.
fn id(id: &str) -> Result<&str, Refused> {
    let harmless = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | ':' | '+');
    // A word that begins with a hyphen is an option.
    let good = id.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_')
        && id.len() <= SESSION_LENGTH_MAX
        && id.chars().all(harmless);
    if good { Ok(id) } else { Err(Refused::BadSession) }
}

/// Quotes a path as one word of a Bourne shell, which is never an option.
pub fn sh_word(path: &str) -> String {
    let path = not_an_option(path);
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '/' | '.' | '_' | '-' | '+' | ':' | ',');
    if !path.is_empty() && path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// A path that begins with a hyphen must not be an option.
fn not_an_option(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

/// A path as one word.
fn path(path: &str, shell: Shell) -> Result<String, Refused> {
    if path.is_empty() || path.chars().any(is_disguising) {
        return Err(Refused::BadPath);
    }
    let path = not_an_option(path);
    match shell {
        Shell::Sh => Ok(sh_word(&path)),
        // PowerShell treats typographic quotes as plain ones.
        Shell::PowerShell if path.contains(['\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}']) => Err(Refused::BadPath),
        Shell::PowerShell => Ok(format!("'{}'", path.replace('\'', "''"))),
        // The command prompt expands variables inside quotes too, and offers no escape for these characters.
        Shell::Cmd if path.contains(['"', '%', '!']) => Err(Refused::BadPath),
        // A single backslash would escape the closing quote.
        Shell::Cmd if path.ends_with('\\') => Ok(format!("\"{path}\\\"")),
        Shell::Cmd => Ok(format!("\"{path}\"")),
    }
}

/// Whether a character is invisible, or changes how others are displayed.
fn is_disguising(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "agent --resume {session}";

    fn session<'a>(id: &'a str, folder: &'a str) -> ResumeTarget<'a> {
        ResumeTarget { session: Some(id), folder: Some(folder), file: None }
    }

    #[test]
    fn every_shell_has_its_own_command_to_enter_a_folder() {
        let session = session("0198-aa", "/w/it's mine");
        let line = |shell| line(TEMPLATE, &session, shell).unwrap();
        assert_eq!(line(Shell::Sh), r"cd '/w/it'\''s mine' && agent --resume 0198-aa");
        let powershell = "Set-Location -LiteralPath '/w/it''s mine'; if ($?) { agent --resume 0198-aa }";
        assert_eq!(line(Shell::PowerShell), powershell);
        assert_eq!(line(Shell::Cmd), "cd /d \"/w/it's mine\" && agent --resume 0198-aa");
    }

    #[test]
    fn a_word_is_quoted_where_needed_and_never_an_option() {
        assert_eq!(
            ["a/b.c", "a b", "it's", "-rf", "", "é"].map(sh_word),
            ["a/b.c", "'a b'", r"'it'\''s'", "./-rf", "''", "'é'"]
        );
    }

    #[test]
    fn a_plain_path_is_not_quoted() {
        assert_eq!(line(TEMPLATE, &session("a", "/w/p-1"), Shell::Sh).unwrap(), "cd /w/p-1 && agent --resume a");
        let nowhere = ResumeTarget { session: Some("a"), ..ResumeTarget::default() };
        assert_eq!(line(TEMPLATE, &nowhere, Shell::Sh).unwrap(), "agent --resume a");
    }

    #[test]
    fn the_source_fills_every_file_placeholder() {
        let session = ResumeTarget { file: Some("/h/a b.jsonl"), ..ResumeTarget::default() };
        let found = line("agent --in {file} --out {file}", &session, Shell::Sh).unwrap();
        assert_eq!(found, "agent --in '/h/a b.jsonl' --out '/h/a b.jsonl'");
        assert_eq!(line(TEMPLATE, &session, Shell::Sh), Err(Refused::Missing("session id")));
    }

    #[test]
    fn an_id_that_contains_shell_syntax_is_refused() {
        let long = "a".repeat(201);
        let hostile = ["", "-rf", "a b", "a;rm", "$(x)", "`x`", "a\nb", "../a", "a'b", "a\"b", "%PATH%", "é", &long];
        for id in hostile {
            for shell in [Shell::Sh, Shell::PowerShell, Shell::Cmd] {
                assert_eq!(line(TEMPLATE, &session(id, "/w"), shell), Err(Refused::BadSession), "{id}");
            }
        }
    }

    #[test]
    fn a_folder_that_contains_shell_syntax_is_quoted_or_refused() {
        let sh = |folder| line(TEMPLATE, &session("a", folder), Shell::Sh);
        assert_eq!(sh("$(x);`y`").unwrap(), "cd '$(x);`y`' && agent --resume a");
        assert_eq!(sh("-P").unwrap(), "cd ./-P && agent --resume a");
        assert_eq!(sh("~").unwrap(), "cd '~' && agent --resume a");
        for folder in ["a\nb", "a\u{1b}[2J", "a\u{202e}b", ""] {
            assert_eq!(sh(folder), Err(Refused::BadPath), "{folder:?}");
        }
        for folder in ["%PATH%", "a\"b", "a!b"] {
            assert_eq!(line(TEMPLATE, &session("a", folder), Shell::Cmd), Err(Refused::BadPath));
        }
        assert_eq!(line(TEMPLATE, &session("a", "C:\\"), Shell::Cmd).unwrap(), "cd /d \"C:\\\\\" && agent --resume a");
        assert_eq!(line(TEMPLATE, &session("a", "\u{2019}; x"), Shell::PowerShell), Err(Refused::BadPath));
    }

    #[cfg(unix)]
    #[test]
    fn a_real_shell_reads_a_quoted_path_unchanged() {
        for folder in ["it's", "a  b", "$HOME", "\\", "*", "é", "#x", "!!", "a\\'b", "-n", "~root"] {
            let session = ResumeTarget { file: Some(folder), ..ResumeTarget::default() };
            let line = line("printf %s {file}", &session, Shell::Sh).unwrap();
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.strip_prefix("./").unwrap_or(&printed), folder);
        }
    }

    #[test]
    fn the_template_of_every_format_makes_a_line() {
        let session = ResumeTarget { session: Some("id"), file: Some("/f"), folder: Some("/w") };
        for format in crate::formats::FORMATS {
            let Some(template) = format.info().resume else { continue };
            let line = line(template, &session, Shell::Sh).unwrap();
            assert!(!line.contains(['{', '}']), "{line}");
        }
    }
}
