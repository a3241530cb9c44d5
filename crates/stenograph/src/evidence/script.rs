//! Scripts that call tools: the texts that they pass to them.

use crate::model::ScriptWords;

impl ScriptWords {
    /// The texts that follow this name in a script, with their offsets.
    pub(crate) fn texts(script: &str, name: &str) -> Vec<(usize, String)> {
        const TEXTS_MAX: usize = 256;
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = script.get(from..).and_then(|rest| rest.find(name)).map(|at| at + from) {
            from = at + name.len();
            let is_inside = script
                .get(..at)
                .is_some_and(|before| before.ends_with(|char: char| char.is_alphanumeric() || char == '_'));
            let rest = script.get(from..).unwrap_or_default();
            let rest = rest.trim_start_matches(['"', '\'']).trim_start();
            let Some(rest) = rest.strip_prefix(':').map(str::trim_start).filter(|_| !is_inside) else { continue };
            if let Some(text) = literal(rest).or_else(|| number(rest)) {
                found.push((at, text));
            }
            if found.len() >= TEXTS_MAX {
                break;
            }
        }
        found
    }
}

/// The number at the start of the text.
fn number(script: &str) -> Option<String> {
    const LENGTH_MAX: usize = 20;
    let digits: String = script.chars().take(LENGTH_MAX).take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// The string literal at the start of the text, in quotes of any kind.
fn literal(script: &str) -> Option<String> {
    let quote = script.chars().next().filter(|char| matches!(char, '"' | '\'' | '`'))?;
    let mut text = String::new();
    let mut chars = script.chars().skip(1);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            char if char == quote => return Some(text),
            char => text.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_a_script_by_their_names() {
        let script = r#"const r = await tools.run({cmd:"echo \"a\"; ls","dir":"/x"}); tools.run({"cmd": 'b', xcmd:"no", cmd: r, id: 77})"#;
        let texts: Vec<String> = ScriptWords::texts(script, "cmd").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["echo \"a\"; ls", "b"]);
        assert!(ScriptWords::texts("cmd:\"open", "cmd").is_empty());
        assert_eq!(ScriptWords::texts(script, "id").into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["77"]);
    }
}
