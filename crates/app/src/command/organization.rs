//! `orgvault org …`

use crate::cli::{OrgCommand, StateArg, StateFlag};
use serde::Serialize;
use vault_cli::failure::{Doing, Failure, NO_ORGANIZATION, refused};
use vault_cli::output::{Output, table};
use vault_cli::text::rfc3339;
use vault_core::id::OrganizationId;
use vault_core::organization::Organization;
use vault_core::usecase::OrganizationCommand;
use vault_core::{Error, Refusal};
use vault_embed::OpenVault;

#[derive(Serialize)]
struct Shown {
    id: String,
    name: String,
    state: &'static str,
    created_at: String,
}

impl From<&Organization> for Shown {
    fn from(organization: &Organization) -> Self {
        Self {
            id: organization.id.to_string(),
            name: organization.name.to_string(),
            state: organization.state.as_str(),
            created_at: rfc3339(organization.created_at),
        }
    }
}

pub(crate) async fn run(vault: &OpenVault, command: OrgCommand, output: Output) -> Result<(), Failure> {
    let (name, change, doing, done) = match command {
        OrgCommand::Create(org) => {
            let organization = vault.operator().create_organization(&org.name).await;
            let organization = organization.map_err(|error| refused(error, NO_ORGANIZATION));
            let organization = organization.doing(|| format!("create organization {}", org.name))?;
            let text = format!("Created organization {}.", organization.name);
            return output.print(&Shown::from(&organization), &text);
        }
        OrgCommand::List => return list(vault, output).await,
        OrgCommand::Set { org, set: StateFlag { state: StateArg::Disabled } } => {
            let done = "Its sessions have ended, its accounts cannot log in, and its integration tokens do not work. \
                        With `--state enabled`, the tokens work again; the sessions do not.";
            (org.name, OrganizationCommand::Disable, ("disable", "Disabled"), done)
        }
        OrgCommand::Set { org, set: StateFlag { state: StateArg::Enabled } } => {
            let done = "Its accounts can log in, and its integration tokens work again. Sessions stay ended.";
            (org.name, OrganizationCommand::Enable, ("enable", "Enabled"), done)
        }
        OrgCommand::Delete { org, yes } => {
            if !yes {
                let question = format!(
                    "This permanently deletes organization {0} with its accounts, credentials and keys.",
                    org.name
                );
                output.confirm(&question, &org.name)?;
            }
            (org.name, OrganizationCommand::Delete, ("delete", "Deleted"), "Its keys are destroyed.")
        }
    };
    let (present, past) = doing;
    let organization = vault.operator().change_organization(&name, change).await;
    let organization = organization.map_err(|error| refused(error, NO_ORGANIZATION));
    let organization = organization.doing(|| format!("{present} organization {name}"))?;
    output.print(&Shown::from(&organization), &format!("{past} organization {}. {done}", organization.name))
}

async fn list(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let organizations = vault.operator().organizations().await?;
    let shown: Vec<Shown> = organizations.iter().map(Shown::from).collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| vec![row.name.clone(), row.state.to_owned(), row.created_at.clone(), row.id.clone()])
        .collect();
    output.print(&shown, &table(&["NAME", "STATE", "CREATED", "ID"], &rows))
}

/// Returns the organization with this name, which is verified to be its own.
pub(super) async fn named(vault: &OpenVault, name: &str) -> Result<Organization, Failure> {
    vault.operator().organization(name).await.map_err(|error| match error {
        Error::Refused(Refusal::NoOrganization) => {
            Failure::new(format!("no organization is named {name}; `orgvault org list` shows all"))
        }
        error => error.into(),
    })
}

/// All organizations, to show their names.
pub(super) struct Organizations(Vec<Organization>);

impl Organizations {
    pub(super) async fn of(vault: &OpenVault) -> Result<Self, Failure> {
        Ok(Self(vault.operator().organizations().await?))
    }

    /// Returns the name of an organization, or an empty string if it was deleted in the meantime.
    pub(super) fn name_of(&self, id: OrganizationId) -> String {
        let found = self.0.iter().find(|organization| organization.id == id);
        found.map_or_else(String::new, |organization| organization.name.to_string())
    }
}
