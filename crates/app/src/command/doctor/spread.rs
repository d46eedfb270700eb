//! Checks of the table distribution on Citus.

use super::{Check, CheckName, Outcome};
use vault_cli::text::counted;
use vault_diesel::{Distribution, TableDistribution};
use vault_embed::OpenVault;

/// Checks the distribution of the tables, and prepared transactions that were not completed.
pub(super) async fn tables(vault: &OpenVault) -> Vec<Check> {
    match vault.spreading().await {
        Ok(None) => Vec::new(),
        Ok(Some(found)) => [Some(places(&found)), unfinished(&found)].into_iter().flatten().collect(),
        Err(error) => {
            vec![Check { check: CheckName::Tables, result: Outcome::Failed, found: error.to_string(), remedy: None }]
        }
    }
}

fn places(found: &Distribution) -> Check {
    if found.is_absent() {
        let text = "the database has the extension Citus, but no table is distributed";
        let remedy = "None if one node is enough. Otherwise stop the servers and run `orgvault migrate --spread`.";
        return Check::other(CheckName::Tables, Outcome::Warning, text, remedy);
    }
    let misplaced = found.misplaced();
    if !misplaced.is_empty() {
        let text = format!("these tables are not distributed correctly: {}", misplaced.join(", "));
        let remedy = "Stop the servers, back the database up, and run `orgvault migrate --spread`.";
        return Check::other(CheckName::Tables, Outcome::Failed, text, remedy);
    }
    let of = |is: &dyn Fn(TableDistribution) -> bool| {
        let names = found.tables.iter().filter(|(_, place, _)| is(*place)).map(|(name, _, _)| *name);
        names.collect::<Vec<_>>()
    };
    let organizations = of(&|place| matches!(place, TableDistribution::Organization(_))).len();
    let text = format!(
        "{} by organization over {}; by keys of their own {}; on the coordinator {}",
        counted(u64::try_from(organizations).unwrap_or(u64::MAX), "table"),
        found.workers.join(" and "),
        of(&|place| matches!(place, TableDistribution::Key(..))).join(", "),
        of(&|place| place == TableDistribution::Coordinator).join(", "),
    );
    Check::passed(CheckName::Tables, text)
}

fn unfinished(found: &Distribution) -> Option<Check> {
    match found.unfinished {
        Some(0) => Some(Check::passed(CheckName::Transactions, "none is pending")),
        Some(count) => {
            let (has, its, holds) = if count == 1 { ("has", "its", "holds") } else { ("have", "their", "hold") };
            let count = counted(u64::try_from(count).unwrap_or(u64::MAX), "transaction");
            let text = format!("{count} {has} been pending for more than two minutes, and {holds} locks on {its} rows");
            let remedy = "The coordinator finishes them once a minute. Check that it runs and reaches every node, or run \
                          `SELECT recover_prepared_transactions()` there.";
            Some(Check::other(CheckName::Transactions, Outcome::Failed, text, remedy))
        }
        None => {
            let remedy = "Run `orgvault doctor` as the owner of the tables.";
            Some(Check::other(
                CheckName::Transactions,
                Outcome::Skipped,
                "the nodes do not report pending transactions",
                remedy,
            ))
        }
    }
}
