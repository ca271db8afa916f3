//! The daemon's door: gRPC on a Unix socket that only its own user may open.
//!
//! A handler converts, asks the engine, and converts back; it decides nothing.
#![forbid(unsafe_code)]

mod handlers;
mod http;
mod peer;
mod rows;
mod socket;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use ostler_domain::{Time, limits::REQUEST_BYTES};
use ostler_engine::Engine;
use ostler_wire::{
    FILE_DESCRIPTOR_SET, REPLY_BYTES,
    pb::{
        admin_service_server::AdminServiceServer, agent_service_server::AgentServiceServer,
        campaign_service_server::CampaignServiceServer, command_service_server::CommandServiceServer,
        conversation_service_server::ConversationServiceServer, event_service_server::EventServiceServer,
        history_service_server::HistoryServiceServer, http_service_server::HttpServiceServer,
        mission_service_server::MissionServiceServer, notice_service_server::NoticeServiceServer,
        provider_service_server::ProviderServiceServer, retention_service_server::RetentionServiceServer,
        session_service_server::SessionServiceServer, share_service_server::ShareServiceServer,
        sql_service_server::SqlServiceServer, tape_service_server::TapeServiceServer,
        ticket_service_server::TicketServiceServer, transcript_service_server::TranscriptServiceServer,
        tree_service_server::TreeServiceServer,
    },
};
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{service::interceptor, transport::Server};

pub use http::{Answer, Arrivals, HttpDoor, Indoors, NoDoor};
pub use socket::{ControlSocket, SocketError};

/// Calls one connection may have open at once; a screen that watches everything needs a few dozen.
const STREAMS_PER_CONNECTION: u32 = 256;
/// A peer that stopped answering is let go of.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What the handlers share.
#[derive(Clone)]
pub struct Served {
    pub engine: Engine,
    pub started: Time,
    pub state_dir: PathBuf,
    /// Told when somebody asks the daemon to end, and whether its sessions are to end too.
    pub stop: watch::Sender<Option<Stop>>,
    /// The other door.
    pub http: Arc<dyn HttpDoor>,
}

/// A wish that the daemon ends.
#[derive(Debug, Clone)]
pub struct Stop {
    pub by: ostler_domain::event::By,
    pub stop_sessions: bool,
}

/// Serves until the future resolves, then finishes what is open.
pub async fn serve(
    served: Served,
    socket: ControlSocket,
    until: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let engine = served.engine.clone();
    let met = move |arrived: io::Result<socket::Connection>| {
        arrived.inspect(|connection| engine.search_too(connection.peer.search()))
    };
    serve_all(served, socket.incoming().map(met), until).await
}

/// Serves those who come by the HTTP door.
pub async fn serve_indoors(
    served: Served,
    arrivals: Arrivals,
    until: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    serve_all(served, ReceiverStream::new(arrivals.connections), until).await
}

async fn serve_all(
    served: Served,
    incoming: impl Stream<Item = io::Result<socket::Connection>>,
    until: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    macro_rules! service {
        ($service:ident) => {{
            health.set_serving::<$service<Served>>().await;
            let service = $service::new(served.clone())
                .max_decoding_message_size(REQUEST_BYTES)
                .max_encoding_message_size(REPLY_BYTES);
            tonic::service::interceptor::InterceptedService::new(service, peer::check)
        }};
    }
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1();
    let reflection = match reflection {
        Ok(service) => Some(interceptor::InterceptedService::new(service, peer::check)),
        Err(error) => {
            tracing::error!(%error, "reflection is not served");
            None
        }
    };
    Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .add_service(service!(SessionServiceServer))
        .add_service(service!(EventServiceServer))
        .add_service(service!(CampaignServiceServer))
        .add_service(service!(AgentServiceServer))
        .add_service(service!(ConversationServiceServer))
        .add_service(service!(TicketServiceServer))
        .add_service(service!(TreeServiceServer))
        .add_service(service!(SqlServiceServer))
        .add_service(service!(TranscriptServiceServer))
        .add_service(service!(RetentionServiceServer))
        .add_service(service!(MissionServiceServer))
        .add_service(service!(HistoryServiceServer))
        .add_service(service!(HttpServiceServer))
        .add_service(service!(NoticeServiceServer))
        .add_service(service!(ShareServiceServer))
        .add_service(service!(TapeServiceServer))
        .add_service(service!(AdminServiceServer))
        .add_service(service!(CommandServiceServer))
        .add_service(service!(ProviderServiceServer))
        .add_service(interceptor::InterceptedService::new(health_service, peer::check))
        .add_optional_service(reflection)
        .serve_with_incoming_shutdown(incoming, until)
        .await
}
