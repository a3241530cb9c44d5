//! Passes output to a pager when a person reads it: `STENO_PAGER`, then `PAGER`, then `less`. An empty variable or `cat` means
//! no pager, as for git. Without a pager, output goes to the terminal.

use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// A pager that runs.
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Whether the user wants a pager.
    pub fn is_enabled() -> bool {
        pager_command().is_some()
    }

    /// Starts the pager that the user chose, and returns its input; `None` if the user wants none or it cannot start.
    pub fn start() -> Option<(Pager, ChildStdin)> {
        // PAGER is a command line for a shell. A program that does not exist must not swallow the output.
        let line = pager_command()?;
        let program = line.split_whitespace().next().unwrap_or_default();
        let mut command = Command::new("sh");
        if !program.contains(['=', '$', '"', '\'', '(']) {
            let mut check = Command::new("sh");
            check.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null()).stderr(Stdio::null());
            check.status().ok().filter(ExitStatus::success)?;
        }
        command.arg("-c").arg(line);
        // -F: leave if everything fits on one screen; -R: pass colours on; -X: leave the text on the screen.
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take()?;
        Some((Pager { child }, input))
    }

    /// Waits until the reader leaves the pager.
    pub fn wait(mut self) {
        let _ = self.child.wait();
    }
}

/// The command line of the pager; `None` if the user wants none.
fn pager_command() -> Option<String> {
    let stated = std::env::var("STENO_PAGER").or_else(|_| std::env::var("PAGER"));
    let line = stated.unwrap_or_else(|_| "less".to_owned()).trim().to_owned();
    (!line.is_empty() && line != "cat").then_some(line)
}
