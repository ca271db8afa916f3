//! The protocol itself, as a client in another language would speak it.

use hyper_util::rt::TokioIo;
use ostler_domain::Reason;
use ostler_testkit::{TestHome, scenario};
use ostler_wire::{
    pb::{self, event_service_client::EventServiceClient, session_service_client::SessionServiceClient},
    status,
};
use tonic::{
    Code, Request,
    transport::{Channel, Endpoint, Uri},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::OSTLER;

async fn channel(home: &TestHome) -> Channel {
    let socket = home.home.control_socket();
    let connect = tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(tokio::net::UnixStream::connect(socket).await?)) }
    });
    Endpoint::from_static("http://ostler").connect_with_connector(connect).await.unwrap()
}

fn create(request_id: &str, prompt: &str) -> pb::CreateSessionRequest {
    pb::CreateSessionRequest {
        request_id: request_id.to_owned(),
        campaign: "shop".to_owned(),
        provider: "script".to_owned(),
        initial_message: Some(prompt.to_owned()),
        ..pb::CreateSessionRequest::default()
    }
}

#[tokio::test]
async fn the_same_request_id_does_it_once() {
    let home = TestHome::started(OSTLER).await;
    let mut sessions = SessionServiceClient::new(channel(&home).await);
    let id = "req_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let first = sessions.create_session(create(id, "hello")).await.unwrap().into_inner().session.unwrap();
    let again = sessions.create_session(create(id, "hello")).await.unwrap().into_inner().session.unwrap();
    assert_eq!(first.id, again.id);
    // Also by the next daemon.
    home.kill_daemon();
    home.start().await;
    let mut sessions = SessionServiceClient::new(channel(&home).await);
    let again = sessions.create_session(create(id, "hello")).await.unwrap().into_inner().session.unwrap();
    assert_eq!(first.id, again.id);
    let other = sessions.create_session(create(id, "something else")).await.unwrap_err();
    assert_eq!(status::to_refusal(&other).unwrap().reason, Reason::RequestConflict);
    let malformed = sessions.create_session(create("not an id", "hello")).await.unwrap_err();
    assert_eq!(malformed.code(), Code::InvalidArgument);
    // Two at once are one, too.
    let id = "req_01ARZ3NDEKTSV4RRFFQ69G5FAW";
    let (mut one, mut two) = (sessions.clone(), sessions.clone());
    let (one, two) =
        tokio::join!(one.create_session(create(id, "race")), two.create_session(create(id, "race")));
    assert_eq!(one.unwrap().into_inner().session.unwrap().id, two.unwrap().into_inner().session.unwrap().id);
}

#[tokio::test]
async fn a_place_behind_the_end_of_the_log_is_refused() {
    let home = TestHome::started(OSTLER).await;
    let mut events = EventServiceClient::new(channel(&home).await);
    let refused = |status: tonic::Status| {
        assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
        assert_eq!(status::to_refusal(&status).unwrap().reason, Reason::CursorUnknown);
    };
    let watch = pb::WatchEventsRequest { filter: None, after: Some(999_999) };
    refused(events.watch_events(watch).await.unwrap_err());
    let position = Some(pb::list_events_request::Position::After(999_999));
    let list = pb::ListEventsRequest { position, ..pb::ListEventsRequest::default() };
    refused(events.list_events(list).await.unwrap_err());
}

#[tokio::test]
async fn health_is_served() {
    let home = TestHome::started(OSTLER).await;
    let mut health = HealthClient::new(channel(&home).await);
    for service in [
        "",
        "ostler.v1.SessionService",
        "ostler.v1.EventService",
        "ostler.v1.CampaignService",
        "ostler.v1.AdminService",
    ] {
        let answer =
            health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_by_field() {
    let home = TestHome::started(OSTLER).await;
    let channel = channel(&home).await;
    let mut sessions = SessionServiceClient::new(channel.clone());
    let list = |cursor: &str| pb::ListSessionsRequest {
        cursor: cursor.to_owned(),
        ..pb::ListSessionsRequest::default()
    };
    for refused in [
        sessions.list_sessions(list("not a cursor")).await.unwrap_err(),
        sessions
            .create_session(pb::CreateSessionRequest { campaign: String::new(), ..create("", "x") })
            .await
            .unwrap_err(),
        sessions
            .create_session(pb::CreateSessionRequest { name: Some("a/b".to_owned()), ..create("", "x") })
            .await
            .unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(status::to_refusal(&refused).is_some());
    }
    // Larger than any request may be: refused, and the connection lives on.
    let huge = sessions.create_session(create("", &"x".repeat(5 * 1024 * 1024))).await.unwrap_err();
    assert_eq!(huge.code(), Code::OutOfRange, "{huge:?}");
    let mut events = EventServiceClient::new(channel);
    let mut request = Request::new(pb::WatchEventsRequest { filter: None, after: Some(0) });
    request.set_timeout(std::time::Duration::from_secs(10));
    let mut watch = events.watch_events(request).await.unwrap().into_inner();
    assert!(
        watch.message().await.unwrap().unwrap().events.is_empty(),
        "the first message says only where it begins"
    );
    assert!(!watch.message().await.unwrap().unwrap().events.is_empty());
}

/// The library's example, as whoever learns from it would run it.
#[test]
fn the_example_of_the_library_shows_what_happens() {
    let example = std::path::Path::new(OSTLER).with_file_name("examples").join("watch");
    if !example.exists() {
        assert!(std::env::var_os("CI").is_none(), "{} was not built", example.display());
        eprintln!("skipped: the example is built by a test of the whole workspace");
        return;
    }
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    let mut watching = home.command_of(&example, &[]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watching.stdout.take().unwrap()));
    let ran = home.run(&["run", &scenario::of(vec![scenario::say("seen from the library")])]);
    assert!(ran.status.success());
    let seen = lines.by_ref().map_while(Result::ok).find(|line| line.contains("AGENT_COMPLETION"));
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(seen.is_some_and(|line| line.contains("seen from the library")));
}
