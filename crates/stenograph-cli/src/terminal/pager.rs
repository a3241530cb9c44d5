//! Passes output to a pager when a person reads it: `PAGER`, else `less`. Without a pager, output goes to the terminal.

use std::process::{Child, ChildStdin, Command, Stdio};

/// A pager that runs.
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Whether the user wants a pager: `cat` switches it off.
    pub fn is_chosen() -> bool {
        chosen() != "cat"
    }

    /// Starts the pager that the user chose, and returns its input; `None` if it is switched off or cannot start.
    pub fn start() -> Option<(Pager, ChildStdin)> {
        let mut command = match chosen().as_str() {
            "cat" => return None,
            "" => Command::new("less"),
            // PAGER is a command line for a shell.
            line => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(line);
                shell
            }
        };
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

fn chosen() -> String {
    let chosen = std::env::var("STENO_PAGER").or_else(|_| std::env::var("PAGER")).unwrap_or_default();
    chosen.trim().to_owned()
}
