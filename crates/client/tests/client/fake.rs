//! A daemon with campaigns and a log. It lives in a runtime of its own, so that dropping it ends its connections in
//! the middle of whatever they do, as a crash would.

use std::{
    collections::HashMap,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex},
};

use ostler_client::{Home, reply::UnknownEvent};
use ostler_domain::{
    CampaignId, Event, Reason, Recorded, Refusal, Time,
    campaign::{Campaign, Root},
    event::Text,
};
use ostler_wire::{
    from_proto,
    pb::{
        self, campaign_service_server::CampaignService, campaign_service_server::CampaignServiceServer,
        event_service_server::EventService, event_service_server::EventServiceServer,
    },
    reply::Received,
    status, to_proto, watched,
};
use tokio::{
    net::UnixListener,
    runtime::Runtime,
    sync::{mpsc, watch},
};
use tokio_stream::{
    Stream,
    wrappers::{ReceiverStream, UnixListenerStream},
};
use tonic::{Request, Response, Status, transport::Server};

/// What survives a crash, and what the test wants.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) log: watch::Sender<Vec<Received>>,
    /// Every change asked for, by its request id, with how often it was.
    pub(crate) asked: Arc<Mutex<HashMap<String, u32>>>,
    /// Changes are done and never answered.
    pub(crate) is_stuck: watch::Sender<bool>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self {
            log: watch::Sender::new(Vec::new()),
            asked: Arc::default(),
            is_stuck: watch::Sender::new(false),
        }
    }

    pub(crate) fn record(&self, count: u64) {
        self.log.send_modify(|log| {
            for _ in 0..count {
                let seq = log.len() as u64 + 1;
                let event = Event::AgentCompletion(Text::from(format!("line {seq}")));
                let time = Time::from_micros(seq as i64);
                log.push(Received::Known(Box::new(Recorded {
                    seq,
                    session: None,
                    session_seq: None,
                    time,
                    event,
                })));
            }
        });
    }

    /// Records something that came after this version.
    pub(crate) fn record_unknown(&self) {
        self.log.send_modify(|log| {
            log.push(Received::Unknown(UnknownEvent {
                seq: log.len() as u64 + 1,
                session: None,
                session_seq: None,
                time: Time::default(),
                kind: "MOON_LANDED".to_owned(),
                body: "{}".to_owned(),
            }));
        });
    }
}

pub(crate) struct Daemon {
    runtime: Option<Runtime>,
}

impl Daemon {
    pub(crate) fn start(home: &Home, disk: &Disk) -> Daemon {
        Daemon::start_at(&home.control_socket(), disk)
    }

    pub(crate) fn start_at(socket: &Path, disk: &Disk) -> Daemon {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = {
            let _in_it = runtime.enter();
            bind(socket).unwrap()
        };
        let server = Server::builder()
            .add_service(CampaignServiceServer::new(disk.clone()))
            .add_service(EventServiceServer::new(disk.clone()));
        runtime.spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
        Daemon { runtime: Some(runtime) }
    }

    pub(crate) fn crash(self) {}
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Waits until every task is gone, which a thread of an async test may not do itself: a daemon that is still
        // dying would answer once more.
        let runtime = self.runtime.take();
        std::thread::spawn(move || drop(runtime)).join().unwrap();
    }
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    let dir = socket.parent().unwrap();
    std::fs::create_dir_all(dir)?;
    let _ = std::fs::remove_file(socket);
    let dir = std::fs::File::open(dir)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(socket.file_name().unwrap());
    UnixListener::bind(short)
}

#[tonic::async_trait]
impl CampaignService for Disk {
    async fn add_campaign(
        &self,
        request: Request<pb::AddCampaignRequest>,
    ) -> Result<Response<pb::AddCampaignResponse>, Status> {
        let request = request.into_inner();
        *self.asked.lock().unwrap().entry(request.request_id.clone()).or_default() += 1;
        let asked = from_proto::add_campaign(request)?;
        self.is_stuck.subscribe().wait_for(|is_stuck| !is_stuck).await.unwrap();
        let campaign = Campaign {
            id: CampaignId::new(Time::from_micros(1), 1),
            name: asked.name.unwrap_or_else(|| "shop".parse().unwrap()),
            root: Root { path: asked.path, device: 1, inode: 2 },
            added: Time::from_micros(3),
            policy: Default::default(),
            tracked_hidden: Vec::new(),
            unwatched: None,
        };
        Ok(Response::new(pb::AddCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }

    async fn get_campaign(
        &self,
        request: Request<pb::GetCampaignRequest>,
    ) -> Result<Response<pb::GetCampaignResponse>, Status> {
        let who = from_proto::text(request.into_inner().who, "who")?;
        let refusal = Refusal::new(Reason::CampaignUnknown, format!("no campaign is called {who}"))
            .because("there are none")
            .hint("ostler campaign add .", "registers this directory");
        Err(status::from_refusal(&refusal))
    }

    async fn list_campaigns(
        &self,
        _request: Request<pb::ListCampaignsRequest>,
    ) -> Result<Response<pb::ListCampaignsResponse>, Status> {
        Ok(Response::new(pb::ListCampaignsResponse { campaigns: Vec::new(), next_cursor: "7".to_owned() }))
    }

    async fn set_campaign(
        &self,
        _request: Request<pb::SetCampaignRequest>,
    ) -> Result<Response<pb::SetCampaignResponse>, Status> {
        Ok(Response::new(pb::SetCampaignResponse { campaign: None }))
    }

    async fn relink_campaign(
        &self,
        _request: Request<pb::RelinkCampaignRequest>,
    ) -> Result<Response<pb::RelinkCampaignResponse>, Status> {
        Ok(Response::new(pb::RelinkCampaignResponse { campaign: None }))
    }

    async fn remove_campaign(
        &self,
        _request: Request<pb::RemoveCampaignRequest>,
    ) -> Result<Response<pb::RemoveCampaignResponse>, Status> {
        Ok(Response::new(pb::RemoveCampaignResponse { campaign: None }))
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl EventService for Disk {
    async fn list_events(
        &self,
        _request: Request<pb::ListEventsRequest>,
    ) -> Result<Response<pb::ListEventsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    type WatchEventsStream = Answers<pb::WatchEventsResponse>;

    async fn watch_events(
        &self,
        request: Request<pb::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let mut log = self.log.subscribe();
        let end = log.borrow().len() as u64;
        let mut seen = request.into_inner().after.unwrap_or(end);
        if seen > end {
            return Err(status::from_refusal(&Refusal::invalid("after is beyond the end of the log")));
        }
        let (answers, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let events: Vec<_> = log
                    .borrow_and_update()
                    .iter()
                    .filter(|event| event.seq() > seen)
                    .map(|event| watched::sent(&to_proto::received(event)))
                    .collect();
                seen += events.len() as u64;
                let answer = pb::WatchEventsResponse { events, seen };
                if answers.send(Ok(answer)).await.is_err() || log.changed().await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    type WatchDeltasStream = Answers<pb::WatchDeltasResponse>;

    async fn watch_deltas(
        &self,
        _request: Request<pb::WatchDeltasRequest>,
    ) -> Result<Response<Self::WatchDeltasStream>, Status> {
        let session_id = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned();
        let delta = |text: &str| {
            Ok(pb::WatchDeltasResponse { session_id: session_id.clone(), text: text.to_owned() })
        };
        let end = Err(status::from_refusal(&Refusal::new(Reason::WrongState, "the session has ended")));
        Ok(Response::new(Box::pin(tokio_stream::iter([delta("hel"), delta("lo"), end]))))
    }

    async fn search_events(
        &self,
        _request: Request<pb::SearchEventsRequest>,
    ) -> Result<Response<pb::SearchEventsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
