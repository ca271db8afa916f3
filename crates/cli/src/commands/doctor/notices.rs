//! Who is told when nobody looks: whether they hear it.

use ostler_client::{Client, UntoldChannel};
use ostler_domain::text::one_line;

use super::{Finding, Verdict};

/// Nothing where everybody hears, or where the daemon cannot say.
pub(super) async fn found(client: &Client) -> Vec<Finding> {
    client.untold().await.unwrap_or_default().iter().map(finding).collect()
}

fn finding(untold: &UntoldChannel) -> Finding {
    let text = format!("{} is not told: {}", untold.channel, one_line(&untold.why, 200));
    Finding::new(Verdict::Warn, "notify", text).fix(format!("ostler notify test {}", untold.channel))
}
