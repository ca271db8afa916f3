//! Providers.

use ostler_domain::provider::{Account, Models, Status};

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
        profiles,
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
        profiles: profiles.into_iter().map(account).collect(),
    }
}

fn account(account: Account) -> pb::ProviderProfile {
    let Account { name, base_url, key, is_logged_in } = account;
    pb::ProviderProfile { name, base_url, key, is_logged_in }
}

pub fn login_plan(plan: LoginPlan) -> pb::PrepareLoginResponse {
    let LoginPlan { program, args, environment, file } = plan;
    pb::PrepareLoginResponse { program, args, environment, file }
}

pub fn models(models: Models) -> pb::ListModelsResponse {
    let Models { models, asked, why_not } = models;
    pb::ListModelsResponse { models, asked, why_not }
}
