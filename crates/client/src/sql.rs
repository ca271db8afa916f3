//! Questions in SQL.

use ostler_domain::sql::{Answer, Question};
use ostler_wire::{from_proto, pb::sql_service_client::SqlServiceClient as Service, to_proto};

use crate::{Client, Error, Incoming, socket};

impl Client {
    /// Asks the views of the record. The columns come first, then rows as they are found.
    pub async fn sql(&self, question: &Question) -> Result<Incoming<Answer>, Error> {
        let request = to_proto::question(question);
        let answers = self.ask(async |channel| Service::new(channel).query(request.clone()).await).await?;
        Ok(Incoming::new(answers, |answer| Ok(from_proto::sql_answer(answer)), socket::path(&self.home)))
    }
}
