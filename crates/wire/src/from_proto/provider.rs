//! Providers.

use ostler_domain::{
    policy::NetMode,
    provider::{Models, Status},
};

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
        is_logged_in,
        model,
        capabilities,
        usage_sources,
        net_mode,
    } = status;
    Status {
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
        net_mode: net_mode.as_deref().and_then(NetMode::parse),
    }
}

pub fn login_plan(plan: pb::PrepareLoginResponse) -> LoginPlan {
    let pb::PrepareLoginResponse { program, args, environment, file } = plan;
    LoginPlan { program, args, environment, file }
}

pub fn models(models: pb::ListModelsResponse) -> Models {
    let pb::ListModelsResponse { models, asked, why_not } = models;
    Models { models, asked, why_not }
}
