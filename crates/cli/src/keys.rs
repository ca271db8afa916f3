//! Keys of models in this process's environment: they go along with what starts agents, so that a daemon that was started
//! elsewhere or earlier needs none of its own.

use std::{collections::BTreeSet, env, fs};

use ostler_client::{CallerKeys, Home};
use ostler_domain::Secret;

use crate::commands::provider_settings;

/// The variables that `config.toml` names, and the usual ones, as far as they are set here.
pub(crate) fn of_this_process(home: &Home) -> CallerKeys {
    // Whoever cannot read it is told so by the daemon, which must.
    let text = fs::read_to_string(home.config_toml()).unwrap_or_default();
    let value = |name: &str| env::var(name).ok().filter(|key| !key.is_empty()).map(Secret::new);
    let set = variables(&text).into_iter().filter_map(|name| {
        let key = value(&name)?;
        Some((name, key))
    });
    set.collect()
}

fn variables(config: &str) -> BTreeSet<String> {
    let settings = provider_settings(config).unwrap_or_default();
    let named = settings.into_values().flat_map(|settings| {
        let of_accounts = settings.profiles.into_values().filter_map(|profile| profile.api_key_env);
        settings.api_key_env.into_iter().chain(of_accounts)
    });
    named.chain(CallerKeys::USUAL.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_named_and_the_usual_ones_are_looked_at() {
        let config = "[watchdog]\nsilent = \"15m\"\n[providers.codex]\napi_key_env = \"MY_KEY\"\n\
             [providers.codex.profiles.work]\napi_key_env = \"WORK_KEY\"\n";
        let usual = CallerKeys::USUAL.map(str::to_owned);
        assert_eq!(
            variables(config),
            usual.iter().cloned().chain(["MY_KEY", "WORK_KEY"].map(str::to_owned)).collect()
        );
        assert_eq!(variables("no toml ["), usual.into());
    }
}
