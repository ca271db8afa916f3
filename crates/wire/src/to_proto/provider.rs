//! Providers.

use ostler_domain::provider::Status;

use crate::pb;

pub fn provider_status(status: Status) -> pb::ProviderStatus {
    let Status { name, program, version, problem, cure, base_url, key, model, capabilities } = status;
    pb::ProviderStatus { name, program, version, problem, cure, base_url, key, model, capabilities }
}
