//! Providers.

use ostler_domain::provider::Status;

use crate::pb;

pub fn provider_status(status: pb::ProviderStatus) -> Status {
    let pb::ProviderStatus { name, program, version, problem, cure, base_url, key, model, capabilities } =
        status;
    Status { name, program, version, problem, cure, base_url, key, model, capabilities }
}
