//! Providers.

use ostler_domain::provider::Status;

use crate::{pb, reply::LoginPlan};

pub fn provider_status(status: pb::ProviderStatus) -> Status {
    let pb::ProviderStatus {
        name,
        program,
        version,
        problem,
        lacks,
        cure,
        base_url,
        key,
        model,
        capabilities,
    } = status;
    Status { name, program, version, problem, lacks, cure, base_url, key, model, capabilities }
}

pub fn login_plan(plan: pb::PrepareLoginResponse) -> LoginPlan {
    let pb::PrepareLoginResponse { program, args, environment, file } = plan;
    LoginPlan { program, args, environment, file }
}
