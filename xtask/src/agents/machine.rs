//! The scripted model, the agents that are installed, and `steno`. Everything happens below one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::table::Agent;
use crate::{Failure, tree};

/// How long an installation may take, in seconds.
const INSTALL_MAX: &str = "600";

/// The folder of a trial, and the model that answers in it.
#[derive(Debug)]
pub struct Machine {
    folder: PathBuf,
    tools: PathBuf,
    /// The command to test.
    pub steno: PathBuf,
    model: Child,
}

/// An answer of the model.
#[derive(Debug)]
pub struct Answer {
    /// The tokens of the request.
    pub input: u64,
    /// The tokens of the answer, with thinking.
    pub output: u64,
    /// The request.
    pub body: Value,
}

impl Machine {
    /// Starts the model in a network that has nothing but loopback.
    pub fn start(folder: &Path, tools: &Path, steno: PathBuf) -> Result<Machine, Failure> {
        for needed in [tools.join("drive"), tools.join("install"), steno.clone()] {
            if !needed.is_file() {
                return Err(format!("{} is missing", needed.display()).into());
            }
        }
        fs::create_dir_all(folder.join("tmp"))?;
        let folder = folder.canonicalize()?;
        let tools = tools.canonicalize()?;
        let log = folder.join("requests");
        let _ = fs::remove_dir_all(&log);
        let start = "ip link set lo up; echo $$ > \"$0/server.pid\"; exec python3 \"$1\" \"$0/requests\" \"$2\"";
        let model = Command::new("unshare")
            .args(["-n", "sh", "-c", start])
            .args([&folder, &tree::root().join("xtask/src/agents/model.py"), &tools])
            .stdin(Stdio::null())
            .stderr(fs::File::create(folder.join("model.log"))?)
            .spawn()
            .map_err(|error| format!("a network of its own needs unshare and root: {error}"))?;
        let (mut machine, start) = (Machine { folder, tools, steno, model }, Instant::now());
        while !log.is_dir() {
            if machine.model.try_wait()?.is_some() || start.elapsed() > Duration::from_secs(20) {
                let said = fs::read_to_string(machine.folder.join("model.log")).unwrap_or_default();
                return Err(format!("the model does not start: {said}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(machine)
    }

    /// Installs an agent unless it is there.
    pub fn install(&self, agent: &Agent) -> Result<(), Failure> {
        let place = |kind: &str| self.folder.join(kind).join(agent.tool);
        if place("npm").exists() || place("venv").exists() {
            return Ok(());
        }
        let installed = Command::new("timeout")
            .args([INSTALL_MAX, "bash"])
            .arg(self.tools.join("install"))
            .arg(agent.tool)
            .env("REAL_AGENTS", &self.folder)
            .output()?;
        match installed.status.success() {
            true => self.unpack(agent),
            false => {
                let said = String::from_utf8_lossy(&installed.stderr).trim().replace('\n', " ");
                Err(format!("{} cannot be installed: {said}", agent.package).into())
            }
        }
    }

    /// Unpacks the programs of a package that has them compressed.
    fn unpack(&self, agent: &Agent) -> Result<(), Failure> {
        const UNPACK: &str = "for (const file of process.argv.slice(1)) { const to = file.slice(0, -3); fs.writeFileSync(to, \
             zlib.brotliDecompressSync(fs.readFileSync(file)), { mode: 0o755 }); }";
        let find = Command::new("find")
            .arg(self.folder.join("npm").join(agent.tool))
            .args(["-path", "*/bin/*.br"])
            .output()?;
        let found = String::from_utf8(find.stdout)?;
        let node = self.folder.join("node22/bin/node");
        let is_done =
            found.is_empty() || Command::new(node).args(["-e", UNPACK]).args(found.lines()).status()?.success();
        if is_done { Ok(()) } else { Err(format!("{} cannot be unpacked", agent.package).into()) }
    }

    /// Where programs are found: `steno` starts some agents, which import a session with a command of their own.
    fn path(&self) -> Result<std::ffi::OsString, Failure> {
        let packages = ["opencode/node_modules/opencode-linux-x64", "kilo/node_modules/@kilocode/cli-linux-x64"];
        let own = packages.map(|package| self.folder.join("npm").join(package).join("bin"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        Ok(std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?)
    }

    /// Ends programs that an agent left running in the network of the model.
    fn end_daemons(&self) {
        let Ok(space) = fs::read_link(format!("/proc/{}/ns/net", self.model.id())) else { return };
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(number) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
            let is_inside = fs::read_link(process.path().join("ns/net")).is_ok_and(|other| other == space);
            if is_inside && number != self.model.id() {
                let _ = Command::new("kill").arg(number.to_string()).status();
            }
        }
    }

    /// A home folder for a trial, empty.
    pub fn new_home(&self, name: &str) -> Result<PathBuf, Failure> {
        for kind in ["home", "work", "store"] {
            let _ = fs::remove_dir_all(self.folder.join(kind).join(name));
        }
        let home = self.folder.join("home").join(name);
        fs::create_dir_all(&home)?;
        Ok(home)
    }

    /// Writes a file into the working folder of a trial.
    pub fn write_in_work(&self, name: &str, file: &str, text: &str) -> Result<(), Failure> {
        Ok(fs::write(self.folder.join("work").join(name).join(file), text)?)
    }

    /// Asks an agent in the home folder with this name, in a new session or in an old one. Returns what it printed and the
    /// answers that it got.
    pub fn ask(
        &self,
        agent: &Agent,
        name: &str,
        prompt: &str,
        session: Option<&str>,
    ) -> Result<(String, Vec<Answer>), Failure> {
        let log = self.folder.join("requests/answers.jsonl");
        let _ = fs::remove_file(&log);
        let done = Command::new("bash")
            .arg(self.tools.join("drive"))
            .args([agent.tool, name, prompt])
            .args(session)
            .env("REAL_AGENTS", &self.folder)
            .stdin(Stdio::null())
            .output()?;
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        self.end_daemons();
        let mut answers = Vec::new();
        for line in fs::read_to_string(&log).unwrap_or_default().lines() {
            let mut line: Value = serde_json::from_str(line)?;
            let tokens = |name: &str| line[name].as_u64().unwrap_or_default();
            // Gemini's counts of an answer do not include thinking.
            let beside =
                if line["path"].as_str().is_some_and(|path| path.contains("enerateContent")) { "thinking" } else { "" };
            let (input, output) = (tokens("input"), tokens("output") + tokens(beside));
            answers.push(Answer { input, output, body: line["body"].take() });
        }
        Ok((said, answers))
    }

    /// Runs `steno` in a home folder; returns the lines of JSON that it printed.
    pub fn steno(&self, name: &str, arguments: &[&str]) -> Result<Vec<Value>, Failure> {
        let home = self.folder.join("home").join(name);
        let done = Command::new(&self.steno)
            .args(arguments)
            .arg("--root")
            .arg(&home)
            .env("HOME", &home)
            .env("PATH", self.path()?)
            .env("STENO_HOME", self.folder.join("store").join(name))
            .stdin(Stdio::null())
            .output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().replace('\n', " ");
            return Err(format!("steno {} failed: {said}", arguments.join(" ")).into());
        }
        let lines = String::from_utf8(done.stdout)?;
        lines.lines().filter(|line| line.starts_with('{')).map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}
