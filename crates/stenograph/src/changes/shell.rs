//! Which shell commands seem to write files, and what is certain about them: a patch inside the command. [`crate::shell`]
//! splits commands into words; nothing is run.

use super::contents::Before;
use super::patch;
use super::step::{Act, Opaque, Step, patched};
use crate::evidence::applied_patch;
use crate::query::{is_path, joined};
use crate::shell::{CommandLine, Document, Word};

/// Programs that write, whatever their arguments.
const WRITERS: [&str; 17] = [
    "mv", "cp", "rm", "rmdir", "unlink", "touch", "truncate", "dd", "tee", "patch", "install", "ln", "unzip", "rsync",
    "ed", "black", "isort",
];

/// Programs that write if one of these words is among their arguments.
const SOMETIMES: [(&str, &[&str]); 28] = [
    ("sed", &["-i", "--in-place"]),
    ("perl", &["-i", "-pi"]),
    ("tar", &["x", "-x", "xf", "-xf", "xzf", "-xzf", "--extract"]),
    (
        "git",
        &[
            "checkout",
            "restore",
            "reset",
            "apply",
            "am",
            "stash",
            "merge",
            "rebase",
            "pull",
            "cherry-pick",
            "revert",
            "clean",
            "mv",
            "rm",
            "switch",
            "clone",
            "submodule",
        ],
    ),
    ("cargo", &["fmt", "fix", "add", "remove", "update", "new", "init"]),
    ("rustfmt", &[""]),
    ("gofmt", &["-w"]),
    ("goimports", &["-w"]),
    ("go", &["get", "tidy", "fmt", "generate"]),
    ("golangci-lint", &["--fix", "fmt"]),
    ("prettier", &["--write", "-w"]),
    ("eslint", &["--fix"]),
    ("biome", &["--write", "--apply"]),
    ("ruff", &["format", "--fix"]),
    ("clang-format", &["-i"]),
    ("npm", &["install", "i", "ci", "uninstall", "update", "init"]),
    ("yarn", &["add", "remove", "install", "upgrade"]),
    ("pnpm", &["add", "remove", "install", "update"]),
    ("bun", &["add", "remove", "install"]),
    ("pip", &["install", "uninstall"]),
    ("pip3", &["install", "uninstall"]),
    ("uv", &["add", "remove", "sync", "lock"]),
    ("poetry", &["add", "remove", "install", "lock"]),
    ("bundle", &["install", "update", "add"]),
    ("composer", &["require", "install", "update", "remove"]),
    ("terraform", &["fmt", "init"]),
    ("dotnet", &["add", "new", "format"]),
    ("apply_patch", &[""]),
];

/// Text in an inline program that writes a file.
const PROGRAMS: [&str; 9] = [
    "open(",
    ".write_text(",
    ".write_bytes(",
    "writeFile",
    "fs.write",
    "shutil.",
    "os.remove(",
    "os.rename(",
    "File.write",
];

/// How an inline program opens a file for writing.
const MODES: [&str; 8] = [",'w", ", 'w", ",\"w", ", \"w", ",'a", ", 'a", ",\"a", ", \"a"];

/// What a command does to files: apply a patch that it contains, otherwise perhaps something.
pub(super) fn read(command: &str, cwd: Option<&str>, steps: &mut Vec<Step>) {
    let CommandLine { commands, documents, is_opaque } = CommandLine::of(command);
    let folder = folder(&commands).map(|folder| joined(folder, cwd).into_owned());
    let cwd = folder.as_deref().or(cwd);
    if let Some(envelope) = applied_patch(command).and_then(patch::envelope) {
        return patched(patch::read_envelope(envelope), cwd, steps);
    }
    if let Some(step) = written(&commands, &documents, cwd) {
        steps.push(step);
        return;
    }
    let mut targets: Vec<String> = Vec::new();
    let writes = commands.iter().filter(|words| writes(words, &mut targets)).count() > 0;
    let programs =
        commands.iter().any(|words| is_program(words)) && PROGRAMS.iter().any(|sign| contains_sign(command, sign));
    // A command that cannot be parsed may do anything.
    if writes || programs || is_opaque {
        let target = targets.into_iter().find(|target| is_path(target));
        let path = target.map(|target| joined(&target, cwd).into_owned()).unwrap_or_default();
        steps.push(Step { path, act: Act::Opaque(Opaque::Command) });
    }
}

/// The file and text of a command that only writes a text to a file.
fn written(commands: &[Vec<Word>], documents: &[Document], cwd: Option<&str>) -> Option<Step> {
    let ([words], [document]) = (commands, documents) else { return None };
    let [program, sign, target] = words.as_slice() else { return None };
    if program.text != "cat"
        || sign.quoted
        || !document.literal
        || !is_path(&target.text)
        || target.text.contains(['$', '*'])
    {
        return None;
    }
    let text = document.text.clone();
    let act = match sign.text.as_str() {
        ">" | ">|" => Act::Write { text, before: Before::Unknown },
        ">>" => Act::Append(text),
        _ => return None,
    };
    Some(Step { path: joined(&target.text, cwd).into_owned(), act })
}

/// The folder that a command line changes to before it runs other commands.
fn folder(commands: &[Vec<Word>]) -> Option<&str> {
    let [first, _, ..] = commands else { return None };
    let [program, folder] = first.as_slice() else { return None };
    Some(folder.text.as_str()).filter(|folder| program.text == "cd" && is_path(folder))
}

fn contains_sign(command: &str, sign: &str) -> bool {
    match sign {
        // Only for writing.
        "open(" => command.contains("open(") && MODES.iter().any(|mode| command.contains(mode)),
        sign => command.contains(sign),
    }
}

/// Whether a word is only an option of a program.
fn is_sign(name: &str, word: &str) -> bool {
    SOMETIMES.iter().any(|(program, signs)| *program == name && signs.contains(&word))
}

/// Whether a command contains a program that it runs.
fn is_program(words: &[Word]) -> bool {
    words.first().is_some_and(|word| {
        let name = program(&word.text);
        ["python", "python3", "node", "ruby", "perl", "deno", "bun"].contains(&name)
    })
}

fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a simple command writes, and where, if that is certain.
fn writes(words: &[Word], targets: &mut Vec<String>) -> bool {
    let mut found = false;
    let mut words_left = words.iter().peekable();
    while let Some(word) = words_left.next() {
        if !word.quoted && matches!(word.text.as_str(), ">" | ">>" | "&>" | ">|") {
            let target = words_left.peek().map(|word| word.text.as_str()).unwrap_or_default();
            if !target.starts_with("/dev/") && !target.starts_with('&') && !target.is_empty() {
                targets.push(target.to_owned());
                found = true;
            }
        }
    }
    // Words before the program: variables, and programs that run another program.
    let is_before = |word: &&Word| {
        let text = word.text.as_str();
        matches!(
            text,
            "sudo"
                | "env"
                | "time"
                | "nice"
                | "npx"
                | "bunx"
                | "command"
                | "exec"
                | "xargs"
                | "then"
                | "do"
                | "else"
                | "{"
                | "("
        ) || text.contains('=') && !text.starts_with(['-', '=', '/'])
    };
    let mut words = words.iter().skip_while(is_before);
    let Some(name) = words.next().map(|word| program(&word.text)) else { return found };
    let given: Vec<&str> = words.map(|word| word.text.as_str()).collect();
    let by_name = WRITERS.contains(&name)
        || SOMETIMES.iter().any(|(program, signs)| {
            *program == name
                && signs.iter().any(|sign| {
                    sign.is_empty()
                        || given.contains(sign)
                        || sign.len() == 2 && sign.starts_with('-') && given.iter().any(|word| word.starts_with(sign))
                })
        });
    if by_name && !given.iter().any(|word| matches!(*word, "--check" | "--dry-run" | "--help" | "--version")) {
        found = true;
        targets.extend(
            given
                .iter()
                .rev()
                .find(|word| !word.starts_with(['-', '>']) && !is_sign(name, word))
                .map(|word| (*word).to_owned()),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> String {
        let mut steps = Vec::new();
        read(command, Some("/w"), &mut steps);
        let shown = |step: &Step| match &step.act {
            Act::Opaque(Opaque::Command) => format!("? {}", step.path),
            act => format!("{} {act:?}", step.path),
        };
        steps.iter().map(shown).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn commands_that_write_have_their_target() {
        for (command, expected) in [
            ("echo a > out.txt", "? /w/out.txt"),
            ("cd x && make 2>&1 | tee log", "? /w/x/log"),
            ("sed -i 's/a/b/' src/a.rs", "? /w/src/a.rs"),
            ("sed -i.bak -e s/a/b/ a", "? /w/a"),
            ("git checkout -- a.rs", "? /w/a.rs"),
            ("FOO=1 sudo rm -rf target", "? /w/target"),
            ("cargo fmt --all", "? "),
            ("cd x && git pull", "? "),
            ("cd x && rm a.rs", "? /w/x/a.rs"),
            ("cd 'x y'; rm a.rs", "? /w/x y/a.rs"),
            ("npx prettier --write a.js", "? /w/a.js"),
            ("python3 -c \"open('a','w').write('x')\"", "? "),
            ("cat a >> b; ls", "? /w/b"),
        ] {
            assert_eq!(found(command), expected, "{command}");
        }
    }

    #[test]
    fn commands_that_look_are_passed_over() {
        for command in [
            "ls -la 2>/dev/null",
            "grep -rn 'a > b' src | head",
            "cargo test 2>&1 | tail -5",
            "cargo fmt --check",
            "git status && git diff",
            "sed -n '1,20p' a.rs",
            "echo 'rm -rf /'",
            "python3 <<'EOF'\nprint(open('a').read())\nEOF",
            "cat <<'EOF'\nrm a\nEOF",
            "awk '$1 > 3' a",
        ] {
            assert_eq!(found(command), "", "{command}");
        }
    }

    #[test]
    fn a_patch_that_is_handed_over_is_read() {
        let command = "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF";
        assert_eq!(found(command), "/w/sub/a Delete");
    }

    #[test]
    fn a_here_document_is_written_unchanged() {
        assert!(found("cat > a <<'EOF'\nx $y\nEOF").starts_with("/w/a Write { text: \"x $y\\n\""));
        assert!(found("cat <<EOF > a\nx\nEOF\n").starts_with("/w/a Write { text: \"x\\n\""));
        assert!(found("cat >> a <<EOF\nx\nEOF\n").starts_with("/w/a Append"));
        assert_eq!(found("cat > a <<EOF\nx $y\nEOF"), "? /w/a");
        assert_eq!(found("cat > a <<EOF\nx\nEOF\nrm a"), "? /w/a");
    }
}
