//! Providers.

use ostler_domain::provider::{Models, Status};

use crate::{pb, reply::LoginPlan};

pub fn provider_status(status: Status) -> pb::ProviderStatus {
    let Status {
        name,
        program,
        version,
        problem,
        lacks,
        cure,
        base_url,
        key,
        is_logged_in,
        model,
        capabilities,
        usage_sources,
        net_mode,
    } = status;
    pb::ProviderStatus {
        name,
        program,
        version,
        problem,
        lacks,
        cure,
        base_url,
        key,
        is_logged_in,
        model,
        capabilities,
        usage_sources,
        net_mode: net_mode.map(|mode| mode.as_str().to_owned()),
    }
}

pub fn login_plan(plan: LoginPlan) -> pb::PrepareLoginResponse {
    let LoginPlan { program, args, environment, file } = plan;
    pb::PrepareLoginResponse { program, args, environment, file }
}

pub fn models(models: Models) -> pb::ListModelsResponse {
    let Models { models, asked, why_not } = models;
    pb::ListModelsResponse { models, asked, why_not }
}
