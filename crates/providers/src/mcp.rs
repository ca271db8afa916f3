//! Ostler's tools for an agent's model: the server that agents of others start inside their sandbox, `ostler mcp`.

/// What agents call it; models see it before the name of each tool.
pub(crate) const NAME: &str = "ostler";
/// What this program is started with to be it.
pub(crate) const ARG: &str = "mcp";
/// What it must find in its environment, where an agent does not hand its own on.
pub(crate) const VARIABLES: [&str; 2] = ["OSTLER_SOCKET", "OSTLER_TOKEN"];
