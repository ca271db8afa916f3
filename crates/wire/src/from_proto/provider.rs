//! Providers.

use ostler_domain::{
    Name,
    policy::NetMode,
    provider::{Account, Models, Status},
};

use super::{Result, optional_id};
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
        profiles,
    } = status;
    let profiles = profiles.into_iter().map(account).collect();
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
        profiles,
    }
}

fn account(account: pb::ProviderProfile) -> Account {
    let pb::ProviderProfile { name, base_url, key, is_logged_in } = account;
    Account { name, base_url, key, is_logged_in }
}

/// The account that is to have a login.
pub fn login_of(profile: Option<String>) -> Result<Option<Name>> {
    optional_id(profile, "profile")
}

pub fn login_plan(plan: pb::PrepareLoginResponse) -> LoginPlan {
    let pb::PrepareLoginResponse { program, args, environment, file } = plan;
    LoginPlan { program, args, environment, file }
}

pub fn models(models: pb::ListModelsResponse) -> Models {
    let pb::ListModelsResponse { models, asked, why_not } = models;
    Models { models, asked, why_not }
}
