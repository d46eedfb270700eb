//! Whether a row is found by what it is looked up by.

use super::backend::{Connection, RunQuery};
use crate::failure::Failure;
use crate::schema::{
    accounts, directory, enrolment_codes, integration_tokens, integrations, invitations, invited_addresses,
    organization_names, organizations,
};
use crate::stored::StoredId as _;
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, select};
use vault_core::digest::LookUpDigests;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::organization::OrganizationName;
use vault_core::port::{InstancePart, InstancePlace, LookUp};

/// The tables that do not lead to the row.
pub(super) async fn missing(
    connection: &mut Connection,
    part: InstancePart,
    place: InstancePlace,
    expected: &[LookUp],
) -> Result<Vec<&'static str>, Failure> {
    let mut missing = Vec::new();
    for look_up in expected {
        let tables = leads(connection, part, place, look_up).await?;
        missing.extend(tables.into_iter().filter_map(|(table, leads)| (!leads).then_some(table)));
    }
    Ok(missing)
}

fn bytes(digests: &LookUpDigests) -> Vec<&[u8]> {
    digests.all().iter().map(|digest| digest.as_bytes().as_slice()).collect()
}

/// Whether each table concerned leads to the row.
async fn leads(
    connection: &mut Connection,
    part: InstancePart,
    (organization, id): InstancePlace,
    look_up: &LookUp,
) -> Result<Vec<(&'static str, bool)>, Failure> {
    let (of, owner) = (organization.stored(), AccountId::from_uuid(id).stored());
    macro_rules! found {
        ($rows:expr) => {
            select(exists($rows)).get_result(connection).await?
        };
    }
    Ok(match (part, look_up) {
        (InstancePart::Accounts, LookUp::Address(address)) => {
            let leading = directory::table
                .filter(directory::address.eq_any(bytes(address)))
                .filter(directory::organization_id.eq(of))
                .filter(directory::account_id.eq(owner));
            vec![("directory", found!(leading))]
        }
        (InstancePart::Invitations, LookUp::Address(address)) => {
            let leading = invited_addresses::table
                .filter(invited_addresses::address.eq_any(bytes(address)))
                .filter(invited_addresses::organization_id.eq(of))
                .filter(invited_addresses::account_id.eq(owner));
            vec![("invited_addresses", found!(leading))]
        }
        (_, LookUp::EnrolmentCode(code)) => {
            let leading = enrolment_codes::table
                .filter(enrolment_codes::code.eq(code.as_bytes().as_slice()))
                .filter(enrolment_codes::organization_id.eq(of))
                .filter(enrolment_codes::account_id.eq(owner));
            vec![("enrolment_codes", found!(leading))]
        }
        (_, LookUp::Token(token)) => {
            let leading = integration_tokens::table
                .filter(integration_tokens::token.eq(token.as_bytes().as_slice()))
                .filter(integration_tokens::organization_id.eq(of))
                .filter(integration_tokens::integration_id.eq(owner));
            vec![("integration_tokens", found!(leading))]
        }
        (_, LookUp::Name(name)) => {
            let own = integrations::table
                .filter(integrations::organization_id.eq(of))
                .filter(integrations::id.eq(owner))
                .filter(integrations::name_key.eq(name));
            vec![("integrations", found!(own))]
        }
        (_, LookUp::OwnName) => has_its_name(connection, organization).await?,
        (InstancePart::PendingSeeds, LookUp::Owner) => {
            let own = accounts::table.filter(accounts::organization_id.eq(of)).filter(accounts::id.eq(owner));
            vec![("accounts", found!(own))]
        }
        (_, LookUp::Owner) => {
            let own = invitations::organization_id.eq(of).and(invitations::account_id.eq(owner));
            vec![("invitations", found!(invitations::table.filter(own)))]
        }
        (_, LookUp::Address(_)) => Vec::new(),
    })
}

/// An organization is found by its name, and listed by it.
async fn has_its_name(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Vec<(&'static str, bool)>, Failure> {
    let row: Option<(String, String)> = organizations::table
        .filter(organizations::id.eq(organization.stored()))
        .select((organizations::name, organizations::name_key))
        .get_result(connection)
        .await
        .optional()?;
    let Some((name, key)) = row else { return Ok(Vec::new()) };
    let own = OrganizationName::parse(&name).is_ok_and(|name| name.uniqueness_key() == key);
    let leading = organization_names::table
        .filter(organization_names::name_key.eq(key))
        .filter(organization_names::organization_id.eq(organization.stored()));
    let leads = select(exists(leading)).get_result(connection).await?;
    Ok(vec![("organizations", own), ("organization_names", leads)])
}
