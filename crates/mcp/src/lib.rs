//! `ostler mcp`: Ostler's tools for an agent's model, as an MCP server on standard streams. It is started by the agent,
//! inside its sandbox, and does what the session socket lets it do: the rights of its own session, and no others.
#![forbid(unsafe_code)]

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use ostler_domain::tool;
use ostler_inside::SessionSocket;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
    transport::IntoTransport,
};
use serde_json::Value;

/// What models are told of all tools together, where agents tell them of no more at first.
const ABOUT: &str =
    "Ostler runs you: tell it of your work, get helpers, search your past, read your ticket, hand on.";

/// Whether this process belongs to a session: elsewhere there is nobody to speak of.
pub fn has_place() -> bool {
    SessionSocket::of_this_process().is_some()
}

/// Serves until whoever started it closes its input.
pub fn run(version: &str) -> ExitCode {
    let Some(socket) = SessionSocket::of_this_process() else { return ExitCode::FAILURE };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let served = runtime.block_on(serve(socket, version, rmcp::transport::stdio()));
    // A read of standard input cannot be taken back, and is not waited for.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "ostler mcp: {why}");
    ExitCode::FAILURE
}

/// Serves one client on any pair of streams.
pub async fn serve<T, E, A>(socket: SessionSocket, version: &str, streams: T) -> Result<(), String>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let server = Server { socket: Arc::new(socket), version: version.to_owned() };
    let running = server.serve(streams).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(|_| ()).map_err(|error| error.to_string())
}

struct Server {
    socket: Arc<SessionSocket>,
    version: String,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("ostler", self.version.as_str()))
            .with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tool::ALL.iter().map(offered).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let socket = Arc::clone(&self.socket);
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        // A call that its client gives up is on the tape all the same, so nothing is to be broken off.
        let used =
            tokio::task::spawn_blocking(move || ostler_inside::use_tool(&socket, &request.name, &arguments));
        let told = used.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let content = vec![ContentBlock::text(told.text)];
        Ok(if told.ok { CallToolResult::success(content) } else { CallToolResult::error(content) }.into())
    }
}

fn offered(tool: &tool::Tool) -> Tool {
    let schema = match (tool.parameters)() {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let offered = Tool::new(tool.name, tool.description, schema);
    // Said only where it is so: it costs as many tokens as a description.
    if tool.only_reads { offered.with_annotations(ToolAnnotations::new().read_only(true)) } else { offered }
}
