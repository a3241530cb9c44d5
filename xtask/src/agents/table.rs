//! The agents that can be driven.

/// An agent.
#[derive(Debug)]
pub struct Agent {
    /// Its name for the scripts.
    pub tool: &'static str,
    /// Its name for `steno`.
    pub name: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// The package that the scripts install.
    pub package: &'static str,
    /// Whether the scripts can resume a session by its id.
    pub resumes: bool,
    /// Whether it records only the sum of its calls and not their number.
    pub is_sum_only: bool,
    /// A file in the working folder with settings for sessions of Claude Code, whose models the agent has from another provider.
    pub settings: Option<&'static str>,
}

/// Settings of OpenCode and its fork: the provider that an imported session names.
pub const PROVIDER: &str = r#"{"provider":{"anthropic":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://127.0.0.1:18080/v1","apiKey":"x"},"models":{"claude-sonnet-4-5":{"name":"Fake","limit":{"context":100000,"output":8000}}}}}}"#;

const fn agent(tool: &'static str, name: &'static str, title: &'static str, package: &'static str) -> Agent {
    Agent { tool, name, title, package, resumes: true, is_sum_only: false, settings: None }
}

/// Claude Code, which starts the sessions that others resume.
pub const CLAUDE: Agent = agent("claude", "claude-code", "Claude Code", "npm @anthropic-ai/claude-code@2.1.325");

/// All agents, in the order in which they are driven.
pub const AGENTS: &[Agent] = &[
    CLAUDE,
    agent("codex", "codex", "Codex", "npm @openai/codex@0.166.0"),
    agent("gemini", "gemini-cli", "Gemini CLI", "npm @google/gemini-cli@0.61.0"),
    agent("qwen", "qwen-code", "Qwen Code", "npm @qwen-code/qwen-code@0.24.4"),
    Agent { settings: Some("opencode.json"), ..agent("opencode", "opencode", "OpenCode", "npm opencode-ai@1.18.33") },
    Agent { settings: Some("kilo.json"), ..agent("kilo", "kilo", "Kilo", "npm @kilocode/cli-linux-x64@7.7.9") },
    agent("pi", "pi", "pi", "npm @earendil-works/pi-coding-agent@0.87.1"),
    agent("kimi", "kimi", "Kimi CLI", "pip kimi-cli==1.51.0"),
    agent("kimicode", "kimi-code", "Kimi Code", "npm @moonshot-ai/kimi-code@2.1.0"),
    agent("copilot", "copilot", "GitHub Copilot CLI", "npm @github/copilot@1.0.102"),
    Agent { is_sum_only: true, ..agent("droid", "droid", "Factory droid", "npm @factory/cli-linux-x64@0.225.2") },
    agent("continue", "continue", "Continue", "npm @continuedev/cli@1.5.47"),
    agent("goose", "goose", "goose", "npm @aaif/goose-binary-linux-x64@1.52.0"),
    agent("grok", "grok", "Grok CLI", "npm @xai-official/grok@1.0.41"),
    Agent { resumes: false, ..agent("cline", "cline", "Cline", "npm cline@3.0.65") },
    agent("openhands", "openhands", "OpenHands CLI", "pip openhands==1.16.0"),
    agent("hermes", "hermes", "Hermes Agent", "pip hermes-agent==0.19.0"),
];
