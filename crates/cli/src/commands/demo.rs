//! `ostler demo`: see `crate::demo`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave the daemon, the campaign and the record in place
    #[arg(long)]
    pub(crate) keep: bool,
    /// End with the dashboard open on the finished mission; Enter closes it and removes everything
    #[arg(long)]
    pub(crate) dashboard: bool,
}
