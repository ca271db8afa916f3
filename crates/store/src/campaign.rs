//! `campaign`: registered directories. Removed ones stay, because sessions go on naming them.

use ostler_domain::{
    CampaignId, Name, Policy, Time,
    budget::CampaignBudget,
    campaign::{Campaign, Root},
};
use rusqlite::{Connection, Params, Row, params};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    convert::{parsed, time, time_if_any},
    error::ReadError,
    store::Store,
};

/// A campaign as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRow {
    pub campaign: Campaign,
    pub removed: Option<Time>,
}

/// The one part of a policy that sums are compared with; the long lists are passed over.
#[derive(Deserialize)]
struct Budgeted {
    budget: Option<CampaignBudget>,
}

pub(crate) fn add(connection: &Connection, seq: u64, campaign: &Campaign) -> rusqlite::Result<()> {
    let root = &campaign.root;
    connection
        .prepare_cached("INSERT INTO campaign(seq, id, name, path, device, inode, added, policy) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
        .execute(params![
            seq.cast_signed(),
            campaign.id.to_string(),
            campaign.name.as_str(),
            root.path,
            // Numbers to compare, not to count with: all 64 bits are kept.
            root.device.cast_signed(),
            root.inode.cast_signed(),
            campaign.added.micros(),
            encoded(&campaign.policy),
        ])?;
    Ok(())
}

pub(crate) fn set_policy(connection: &Connection, id: CampaignId, policy: &Policy) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE campaign SET policy = ?2 WHERE id = ?1 AND removed IS NULL")?
        .execute(params![id.to_string(), encoded(policy)])?;
    Ok(())
}

pub(crate) fn relink(connection: &Connection, id: CampaignId, root: &Root) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE campaign SET path = ?2, device = ?3, inode = ?4 WHERE id = ?1 AND removed IS NULL",
        )?
        .execute(params![id.to_string(), root.path, root.device.cast_signed(), root.inode.cast_signed()])?;
    Ok(())
}

fn encoded(policy: &Policy) -> String {
    // A policy is plain structs with string keys: serializing it cannot fail.
    serde_json::to_string(policy).unwrap_or_default()
}

pub(crate) fn remove(connection: &Connection, id: CampaignId, at: Time) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE campaign SET removed = ?2 WHERE id = ?1 AND removed IS NULL")?
        .execute(params![id.to_string(), at.micros()])?;
    Ok(())
}

impl Store {
    /// The registered campaigns, oldest first.
    pub async fn campaigns(&self) -> Result<Vec<Campaign>, ReadError> {
        self.read(|reader| registered(&reader.connection, "1 ORDER BY seq", [])).await
    }

    /// The campaigns whose sessions are on record, oldest first: those that were removed too.
    pub async fn recorded_campaigns(&self) -> Result<Vec<Campaign>, ReadError> {
        self.read(|reader| {
            let condition =
                "removed IS NULL OR EXISTS (SELECT 1 FROM session WHERE session.campaign = campaign.id)
                             ORDER BY seq";
            let found = query(&reader.connection, condition, [])?;
            Ok(found.into_iter().map(|row| row.campaign).collect())
        })
        .await
    }

    /// What the registered campaigns are called, oldest first.
    pub async fn campaign_names(&self) -> Result<Vec<(CampaignId, Name)>, ReadError> {
        self.read(|reader| {
            let sql = "SELECT id, name FROM campaign WHERE removed IS NULL ORDER BY seq";
            let mut statement = reader.connection.prepare_cached(sql)?;
            let name = |row: &Row<'_>| {
                Ok((parsed(row, "id", "campaign id")?, parsed(row, "name", "campaign name")?))
            };
            statement.query_and_then([], name)?.collect()
        })
        .await
    }

    /// The budgets of the registered campaigns that have one.
    pub async fn campaign_budgets(&self) -> Result<Vec<(CampaignId, CampaignBudget)>, ReadError> {
        self.read(|reader| {
            let sql = "SELECT id, policy FROM campaign WHERE removed IS NULL ORDER BY seq";
            let mut statement = reader.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut budgets = Vec::new();
            while let Some(row) = rows.next()? {
                let Budgeted { budget } = policy(row)?;
                if let Some(budget) = budget {
                    budgets.push((parsed(row, "id", "campaign id")?, budget));
                }
            }
            Ok(budgets)
        })
        .await
    }

    /// A campaign by its id, also one that was removed.
    pub async fn campaign(&self, id: CampaignId) -> Result<Option<CampaignRow>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// The registered campaign of this name.
    pub async fn campaign_named(&self, name: &str) -> Result<Option<Campaign>, ReadError> {
        let name = name.to_owned();
        self.read(move |reader| Ok(registered(&reader.connection, "name = ?1", [name])?.pop())).await
    }

    /// The registered campaign that a directory lies in or is: the innermost one.
    pub async fn campaign_containing(&self, canonical_dir: &str) -> Result<Option<Campaign>, ReadError> {
        let dir = canonical_dir.to_owned();
        self.read(move |reader| {
            // Few enough to look at all; an index cannot answer "is a prefix of".
            let mut found = registered(
                &reader.connection,
                "(path = ?1 OR substr(?1, 1, length(path) + 1) = path || '/') ORDER BY length(path)",
                [dir],
            )?;
            Ok(found.pop())
        })
        .await
    }
}

fn registered(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<Campaign>, ReadError> {
    let found = query(connection, &format!("removed IS NULL AND {condition}"), params)?;
    Ok(found.into_iter().map(|row| row.campaign).collect())
}

fn query(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<CampaignRow>, ReadError> {
    let sql = format!(
        "SELECT id, name, path, device, inode, added, removed, policy FROM campaign WHERE {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<CampaignRow, ReadError> {
    let root = Root {
        path: row.get("path")?,
        device: row.get::<_, i64>("device")?.cast_unsigned(),
        inode: row.get::<_, i64>("inode")?.cast_unsigned(),
    };
    let campaign = Campaign {
        id: parsed(row, "id", "campaign id")?,
        name: parsed(row, "name", "campaign name")?,
        root,
        added: time(row, "added")?,
        policy: policy(row)?,
        tracked_hidden: Vec::new(),
        unwatched: None,
    };
    Ok(CampaignRow { campaign, removed: time_if_any(row, "removed")? })
}

/// A row's policy, or a part of it.
fn policy<T: DeserializeOwned>(row: &Row<'_>) -> Result<T, ReadError> {
    serde_json::from_str(row.get_ref("policy")?.as_str().map_err(rusqlite::Error::from)?)
        .map_err(|error| ReadError::Row { what: "campaign policy", text: error.to_string() })
}
