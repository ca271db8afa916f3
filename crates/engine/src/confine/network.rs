//! The network of a sandbox: none, the host's own, or a gateway and what it is told.

use ostler_domain::{
    Hint, Name, Policy,
    confinement::Network,
    gateway::{GATEWAY_VERSION, GatewayOrder, Reach},
    limits::{GATEWAY_IDLE, GATEWAY_PORT},
    policy::NetMode,
};

use super::Confined;
use crate::{Options, keeper::NotStarted};

/// Ports that a sandbox in the host's network may connect to. Names are looked up on port 53, by TCP.
const HOST_PORTS: [u16; 4] = [22, 53, 80, 443];
/// What programs take the address of a proxy from. Some know only the one letter case, some only the other.
const PROXY: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Without it, agents send calls to their own loopback to the proxy, and fail or hang.
const OWN_LOOPBACK: &str = "127.0.0.1,localhost,::1";

pub(super) fn of(mode: NetMode) -> Network {
    match mode {
        NetMode::None => Network::None,
        NetMode::Provider => Network::Provider,
        NetMode::Open => Network::Open,
        NetMode::Host => Network::Host { ports: HOST_PORTS.to_vec() },
    }
}

/// Gives a sandbox its gateway, if its network has one: the port, the variables that lead there, and the order.
pub(crate) fn gateway(
    confined: &mut Confined,
    policy: &Policy,
    campaign: &Name,
    options: &Options,
) -> Result<Option<GatewayOrder>, NotStarted> {
    let reach = match confined.confinement.network {
        Network::Provider => Reach::Provider,
        Network::Open => Reach::Open,
        Network::None | Network::Host { .. } => return Ok(None),
    };
    let order = GatewayOrder {
        version: GATEWAY_VERSION,
        campaign: campaign.to_string(),
        reach,
        allow: hosts(policy, campaign, options)?,
        idle_ms: GATEWAY_IDLE.as_millis() as u64,
        model: None,
    };
    confined.confinement.gateway_port = Some(GATEWAY_PORT);
    let address = format!("http://127.0.0.1:{GATEWAY_PORT}");
    let variables = PROXY.map(|name| (name, address.as_str())).into_iter();
    let variables = variables.chain(NO_PROXY.map(|name| (name, OWN_LOOPBACK)));
    confined.environment.extend(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(Some(order))
}

/// `net.allow` with its presets resolved: whom a language's tools fetch from is said in `config.toml`, not here.
fn hosts(policy: &Policy, campaign: &Name, options: &Options) -> Result<Vec<String>, NotStarted> {
    let mut hosts = Vec::new();
    for item in &policy.net_allow {
        match item.strip_prefix('@') {
            None => hosts.push(item.clone()),
            Some(preset) => match options.network_presets.get(preset) {
                Some(named) => hosts.extend(named.iter().cloned()),
                None => {
                    let message = format!(
                        "net.allow has {item}, but config.toml does not say which hosts that is: \
                         [network.presets] {preset} = [\"host\", …]"
                    );
                    let cure = |command, effect: &str| Hint { command, effect: effect.to_owned() };
                    let cures = vec![
                        cure(
                            format!("ostler config set network.presets.{preset}+=HOST"),
                            "names a host that its tools fetch from",
                        ),
                        cure(
                            format!("ostler campaign set {campaign} net.allow-={item}"),
                            "lets agents start without it",
                        ),
                    ];
                    return Err(NotStarted { cures, ..NotStarted::at("policy", message) });
                }
            },
        }
    }
    Ok(hosts)
}
