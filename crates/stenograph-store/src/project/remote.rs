//! Normalises the spellings of a repository's remote. It contacts no host.

use std::path::Path;

/// The remote as `host/path`: the same for https, ssh and scp syntax, without user, password, port and `.git`. A local path
/// becomes absolute, seen from `repository`. `None` if it is empty.
pub fn normal(remote: &str, repository: &Path) -> Option<String> {
    let remote = remote.trim();
    if let Some((scheme, rest)) = remote.split_once("://") {
        // Some helpers precede the scheme: `codecommit::https://…`.
        return match scheme.rsplit("::").next().unwrap_or(scheme).to_ascii_lowercase().as_str() {
            "file" => local(rest, repository),
            _ => hosted(rest),
        };
    }
    match remote.split_once(':') {
        // A single letter is a drive, and a separator before the colon makes it a path.
        Some((host, path)) if host.len() > 1 && !host.contains(['/', '\\']) => {
            let host = host.rsplit('@').next().unwrap_or(host);
            joined(host, path)
        }
        _ => local(remote, repository),
    }
}

fn hosted(rest: &str) -> Option<String> {
    let (authority, path) = rest.split_once('/')?;
    let host = authority.rsplit('@').next().unwrap_or(authority);
    // The colons of an IPv6 address are in brackets.
    let host = match host.split_once(']') {
        Some((host, _)) => host.trim_start_matches('['),
        None => host.split(':').next().unwrap_or(host),
    };
    // A query or fragment may contain a password.
    joined(host, path.split(['?', '#']).next().unwrap_or(path))
}

fn joined(host: &str, path: &str) -> Option<String> {
    let path = trimmed(path.trim_start_matches('/'));
    let harmless = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    (harmless(host) && harmless(path)).then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

fn local(path: &str, repository: &Path) -> Option<String> {
    let path = trimmed(path);
    if path.is_empty() || path.chars().any(char::is_control) {
        return None;
    }
    // Git resolves it from the work tree, which contains the repository's folder.
    let from = if repository.ends_with(".git") { repository.parent().unwrap_or(repository) } else { repository };
    Some(format!("file:{}", super::lexical(&from.join(path)).to_string_lossy()))
}

fn trimmed(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(remote: &str) -> Option<String> {
        super::normal(remote, Path::new("/w/p/.git"))
    }

    #[test]
    fn all_spellings_of_a_repository_are_one() {
        let spellings = [
            "https://example.org/team/tool.git",
            "https://example.org/team/tool",
            "https://Example.org:443/team/tool/",
            "https://alice:s3cret@example.org/team/tool.git",
            "https://example.org/team/tool.git?token=s3cret",
            "ssh://git@example.org/team/tool.git",
            "ssh://git@example.org:2222/team/tool.git",
            "git@example.org:team/tool.git",
            "example.org:/team/tool",
            "git://example.org/team/tool.git",
            "git+ssh://git@example.org/team/tool.git",
        ];
        for spelling in spellings {
            assert_eq!(normal(spelling).as_deref(), Some("example.org/team/tool"), "{spelling}");
        }
        assert_eq!(normal("ssh://git@[::1]:22/a.git").as_deref(), Some("::1/a"));
    }

    #[test]
    fn a_path_is_seen_from_the_repository() {
        assert_eq!(normal("../origin.git").as_deref(), Some("file:/w/origin"));
        assert_eq!(normal("file:///srv/origin.git").as_deref(), Some("file:/srv/origin"));
        assert_eq!(normal("/srv/origin.git/").as_deref(), Some("file:/srv/origin"));
        assert_eq!(normal("./a:b").as_deref(), Some("file:/w/p/a:b"));
    }

    #[test]
    fn nonsense_is_not_a_remote() {
        for nonsense in ["", "https://", "https://example.org", "https://example.org/", "git@example.org:", "a\u{1b}b"]
        {
            assert_eq!(normal(nonsense), None, "{nonsense:?}");
        }
    }
}
