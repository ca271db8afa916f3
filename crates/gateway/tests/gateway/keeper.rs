//! Plays the keeper of a gateway: holds its port, gives it its order, hears its records.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use ostler_domain::gateway::{
    Allowance, GATEWAY_VERSION, GatewayLine, GatewayOrder, ModelCall, ModelOrder, Network, Reach, Spent,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Keeper {
    pub(crate) listener: TcpListener,
    pub(crate) order: GatewayOrder,
    pub(crate) gateway: Child,
    pub(crate) records: BufReader<UnixStream>,
}

impl Keeper {
    pub(crate) fn new(reach: Reach, allow: &[&str], idle_ms: u64) -> Keeper {
        Keeper::with_model(reach, allow, idle_ms, None)
    }

    pub(crate) fn with_model(
        reach: Reach,
        allow: &[&str],
        idle_ms: u64,
        model: Option<ModelOrder>,
    ) -> Keeper {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let allow = allow.iter().map(|&host| host.to_owned()).collect();
        let campaign = "shop".to_owned();
        let order = GatewayOrder { version: GATEWAY_VERSION, campaign, reach, allow, idle_ms, model };
        let (gateway, records) = start(&listener, &order);
        Keeper { listener, order, gateway, records }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// Says something to the gateway, and gives all that it answers.
    pub(crate) fn ask(&self, text: &str) -> String {
        let mut client = self.connect();
        client.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A tunnel that was granted.
    pub(crate) fn tunnel(&self, host: &str) -> TcpStream {
        let mut client = self.connect();
        write!(client, "CONNECT {host}:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = [0; 39];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 Connection Established\r\n\r\n");
        client
    }

    fn line(&mut self) -> (GatewayLine, Vec<u8>) {
        let mut line = String::new();
        self.records.read_line(&mut line).unwrap();
        let split = GatewayLine::split(line.trim_end().as_bytes());
        let (found, record) = split.unwrap_or_else(|| panic!("no record: {line:?}"));
        (found, record.to_vec())
    }

    fn remember(&mut self, spent: &[u8]) {
        if let Some(model) = &mut self.order.model {
            model.spent = serde_json::from_slice(spent).unwrap();
        }
    }

    pub(crate) fn record(&mut self) -> Network {
        let (kind, record) = self.line();
        assert_eq!(kind, GatewayLine::Net);
        serde_json::from_slice(&record).unwrap()
    }

    pub(crate) fn call(&mut self) -> ModelCall {
        loop {
            match self.line() {
                (GatewayLine::Spent, spent) => self.remember(&spent),
                (GatewayLine::Wire, call) => return serde_json::from_slice(&call).unwrap(),
                (GatewayLine::Net, record) => panic!("no call: {}", String::from_utf8_lossy(&record)),
            }
        }
    }

    /// What the gateway says when it has heard what is allowed.
    pub(crate) fn heeded(&mut self) -> Spent {
        let (kind, spent) = self.line();
        assert_eq!(kind, GatewayLine::Spent);
        self.remember(&spent);
        self.spent()
    }

    pub(crate) fn spent(&self) -> Spent {
        self.order.model.as_ref().unwrap().spent.clone()
    }

    pub(crate) fn allow(&mut self, allowance: Allowance) {
        writeln!(self.records.get_mut(), "{}", serde_json::to_string(&allowance).unwrap()).unwrap();
        self.order.model.as_mut().unwrap().allowance = allowance;
    }

    /// The gateway there is ends, and another one begins.
    pub(crate) fn replace(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
        (self.gateway, self.records) = start(&self.listener, &self.order);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

pub(crate) fn start(listener: &TcpListener, order: &GatewayOrder) -> (Child, BufReader<UnixStream>) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let gateway = Command::new(env!("CARGO_BIN_EXE_gateway-under-test"))
        .stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    writeln!(ours, "{}", serde_json::to_string(order).unwrap()).unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    (gateway, BufReader::new(ours))
}
