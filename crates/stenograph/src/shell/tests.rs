//! What the lexer makes of commands that agents write, and its laws on any text.

use proptest::prelude::*;

use super::*;

fn words(command: &str) -> Vec<Vec<String>> {
    let commands = CommandLine::of(command).commands;
    commands.into_iter().map(|words| words.into_iter().map(|word| word.text).collect()).collect()
}

#[test]
fn signs_between_quotes_part_nothing() {
    assert_eq!(words(r#"rg "a|b; c" 'd && e' x"#), [["rg", "a|b; c", "d && e", "x"]]);
    assert_eq!(words("cd a && make 2>&1 | tail"), [vec!["cd", "a"], vec!["make", ">", "&1"], vec!["tail"]]);
    assert_eq!(words("a\\|b"), [["a|b"]]);
    assert_eq!(words("a \\\n b"), [["a", "b"]]);
    assert_eq!(words(r#"grep "a\.b" x"#), [["grep", r"a\.b", "x"]]);
    assert!(words(" ; | ").is_empty());
}

#[test]
fn a_comment_ends_with_its_line() {
    assert_eq!(words("# don't stop\nrm a"), [["rm", "a"]]);
    assert_eq!(words("ls # it's \"here\nrm a # b\n"), [vec!["ls"], vec!["rm", "a"]]);
    assert_eq!(words("echo a#b $# '#c'"), [["echo", "a#b", "$#", "#c"]]);
    assert_eq!(words("# cat <<EOF\nrm a"), [["rm", "a"]]);
}

#[test]
fn a_sign_in_a_text_begins_no_document() {
    let told = CommandLine::of("echo 'a << EOF'\nrm b\necho \"x <<EOF\"\nrm c");
    assert!(told.documents.is_empty());
    assert_eq!(told.commands.len(), 4);
    assert_eq!(words("echo $((1 << 4))\nrm a"), [vec!["echo", "$((1 << 4))"], vec!["rm", "a"]]);
    assert_eq!(words("(( x <<= 2 ))\nrm a").last().unwrap(), &["rm", "a"]);
    assert_eq!(words("grep x <<< 'a\nb' && rm c"), [vec!["grep", "x", "<<<", "a\nb"], vec!["rm", "c"]]);
}

#[test]
fn documents_are_no_commands() {
    let told = CommandLine::of("cat <<'EOF' | sort\nrm a\n# b'\nEOF\nls\n");
    let texts: Vec<Vec<&str>> =
        told.commands.iter().map(|words| words.iter().map(|word| word.text.as_str()).collect()).collect();
    assert_eq!(texts, [vec!["cat"], vec!["sort"], vec!["ls"]]);
    assert_eq!(told.documents, [Document { text: "rm a\n# b'\n".into(), literal: true }]);
    let told = CommandLine::of("a <<-X b <<\"Y Z\"\n\tone $x\n\tX\ntwo\nY Z\nc");
    assert_eq!(
        told.documents,
        [Document { text: "one $x\n".into(), literal: false }, Document { text: "two\n".into(), literal: true }]
    );
    assert_eq!(told.commands.len(), 2);
    let told = CommandLine::of("git commit -m \"$(cat <<'EOF'\nit's \"done\"; rm x\nEOF\n)\" && git push");
    assert_eq!(told.documents.len(), 1);
    let programs: Vec<&str> = told.commands.iter().map(|words| words[0].text.as_str()).collect();
    assert_eq!(programs, ["cat", "git", "git"]);
}

#[test]
fn what_a_command_is_made_of_runs_first() {
    assert_eq!(
        words("echo $(grep a b) `ls c`"),
        [vec!["grep", "a", "b"], vec!["ls", "c"], vec!["echo", "$(grep a b)", "`ls c`"]]
    );
    assert_eq!(words("(cd a; make)"), [vec!["cd", "a"], vec!["make"]]);
    assert_eq!(words("diff <(sort a) <(sort b)")[2][0], "diff");
}

#[test]
fn an_expansion_and_an_array_are_parts_of_a_word() {
    assert_eq!(words("echo ${x:-a # b; c} d\nrm a"), [vec!["echo", "${x:-a # b; c}", "d"], vec!["rm", "a"]]);
    assert_eq!(words("echo ${#x} \"${y:-it's}\" z"), [["echo", "${#x}", "${y:-it's}", "z"]]);
    assert_eq!(words("a=(rm -rf $(ls b)) && c"), [vec!["ls", "b"], vec!["a=(rm -rf $(ls b))"], vec!["c"]]);
    assert_eq!(words("echo ${a:-$(ls b)}")[0], ["ls", "b"]);
    assert_eq!(words(r"printf $'it\'s\t%s' a$'\n'"), [["printf", "it's\t%s", "a\n"]]);
    assert_eq!(words(r#"echo "$'a'" b"#), [["echo", "$'a'", "b"]]);
    assert_eq!(words(r#"echo "`grep \"a b\" c`""#)[0], ["grep", "a b", "c"]);
}

#[test]
fn a_redirection_is_apart_from_the_word_before_it() {
    assert_eq!(words("sort<in 2>err>out"), [["sort", "<", "in", ">", "err", ">", "out"]]);
    assert_eq!(words("make&>log; exec 3<&0"), [vec!["make", ">", "log"], vec!["exec", "<", "&0"]]);
    assert_eq!(words("a\u{a0}b"), [["a\u{a0}b"]]);
}

#[test]
fn a_pattern_of_a_case_ends_no_substitution() {
    let told = words("echo $(case $x in a) ls b;; *) ls c;; esac) d\nrm e");
    assert_eq!(told.last().unwrap(), &["rm", "e"]);
    assert!(told.contains(&vec!["ls".to_owned(), "b".to_owned()]));
    assert_eq!(words("$(echo case) x")[1], ["$(echo case)", "x"]);
}

#[test]
fn two_subshells_are_not_arithmetic() {
    assert_eq!(words("((cd a; ls) && rm b)\nmake"), [vec!["cd", "a"], vec!["ls"], vec!["rm", "b"], vec!["make"]]);
    assert_eq!(words("echo $((cd a); ls)")[0], ["cd", "a"]);
    assert_eq!(words("echo $(((1 + 2) * (3)))"), [["echo", "$(((1 + 2) * (3)))"]]);
    assert!(CommandLine::of(&format!("{}{}", "((a) ".repeat(100), " )".repeat(100))).is_opaque);
}

#[test]
fn what_is_nested_too_deeply_is_opaque() {
    let deep = format!("echo {}x{}", "$(a ".repeat(1000), ")".repeat(1000));
    let told = CommandLine::of(&deep);
    assert!(told.is_opaque && told.commands.is_empty());
    assert!(CommandLine::of(&"a ".repeat(WORDS_MAX + 1)).is_opaque);
}

proptest! {
    #[test]
    fn any_text_keeps_the_laws(text in "[a-c#'\"`${}()<>|&;=\\\\\n\t E0-]{0,80}") {
        prop_assert_eq!(crate::laws::shell::check(&text), [""; 0]);
    }

    #[test]
    fn a_comment_changes_nothing(before in "[a-c |&;]{0,20}", comment in "[a-c#'\"`$()<>|&;\\\\ ]{0,20}") {
        let with = CommandLine::of(&format!("{before} #{comment}\nls"));
        prop_assert_eq!(with, CommandLine::of(&format!("{before} \nls")));
    }
}
