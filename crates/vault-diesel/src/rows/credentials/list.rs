//! Lists of credentials. Every page costs the same: an index leads to its first row, and a page of a list with several filters
//! reads at most [`LIST_WINDOW`] rows.

use super::row::CredentialRow;
use crate::db::{Db, Tx, exists_row_by_row, narrow, without_index};
use crate::failure::Failure;
use crate::new_row::Never;
use crate::schema::{credential_labels, credentials};
use crate::stored::{AFTER_ALL_IDS, AnyId, BEFORE_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::sql_types::Bool;
use diesel::{
    BoolExpressionMethods as _, BoxableExpression, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _,
    SelectableHelper as _,
};
use vault_core::credential::{
    CredentialQuery, CredentialType, EXPIRING_SECONDS, HealthState, LIST_WINDOW, ListFilter, ListPosition, ListedRows,
};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::id::CredentialId;
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;

diesel::alias!(credential_labels as other_labels: OtherLabels);

/// Reads a page at `now`.
pub(crate) async fn page(tx: &Tx<'_>, query: &CredentialQuery, now: Timestamp) -> Result<ListedRows, Failure> {
    match query.filter.expires_before {
        _ if query.has_one_index() => by_one_index(tx, query).await,
        Some(before) => by_expiry(tx, query, before, now).await,
        None => within_a_window(tx, query, now).await,
    }
}

/// The whole list, or that of one namespace, type or label.
async fn by_one_index(tx: &Tx<'_>, query: &CredentialQuery) -> Result<ListedRows, Failure> {
    let before = query.after.map_or(AFTER_ALL_IDS, |after| after.id.stored());
    let newest_first = credentials::table
        .filter(credentials::organization_id.eq(query.organization.stored()))
        .filter(credentials::id.lt(before))
        .order(credentials::id.desc())
        .select(CredentialRow::as_select());
    let page = if let Some(label) = query.labels.as_slice().first().and_then(|label| label.all().first()) {
        let of_both = credential_labels::organization_id.eq(credentials::organization_id);
        let labelled = credential_labels::table
            .inner_join(credentials::table.on(of_both.and(credential_labels::id.eq(credentials::id))))
            .filter(credential_labels::organization_id.eq(query.organization.stored()))
            .filter(narrow(credential_labels::label.eq(bytes_of(label))))
            .filter(credential_labels::id.lt(before))
            .order(credential_labels::id.desc())
            .select(CredentialRow::as_select());
        tx.page(labelled, query.limit)
    } else if let Some(namespace) = query.filter.namespace.as_ref().map(Namespace::as_str) {
        tx.page(newest_first.filter(narrow(credentials::namespace.eq(namespace))), query.limit)
    } else if let Some(kind) = query.filter.kind.map(CredentialType::as_str) {
        tx.page(newest_first.filter(narrow(credentials::kind.eq(kind))), query.limit)
    } else {
        tx.page(newest_first, query.limit)
    };
    let rows = page.await?.into_iter().map(CredentialRow::decode).collect::<Result<_, _>>()?;
    Ok(ListedRows { rows, searched_to: None })
}

type Boxed<'a> = credentials::BoxedQuery<'a, Db>;
type Condition<'a, Table> = Box<dyn BoxableExpression<Table, Db, SqlType = Bool> + 'a>;

fn bytes_of(label: &Digest) -> &[u8] {
    label.as_bytes().as_slice()
}

/// The condition that a row is of a label. One digest is compared directly, so that the index returns the rows in their order.
fn is_label(label: &LookupDigests) -> Condition<'_, credential_labels::table> {
    match label.all() {
        [only] => Box::new(credential_labels::label.eq(bytes_of(only))),
        several => Box::new(credential_labels::label.eq_any(several.iter().map(bytes_of).collect::<Vec<_>>())),
    }
}

/// The condition that the row's credential has another label.
fn has_label_too<'a>(
    organization: IdBytes,
    label: &'a LookupDigests,
) -> Option<Condition<'a, credential_labels::table>> {
    let has = |digest: &'a Digest| -> Condition<'a, credential_labels::table> {
        Box::new(exists_row_by_row(
            other_labels
                .filter(other_labels.field(credential_labels::organization_id).eq(organization))
                .filter(other_labels.field(credential_labels::label).eq(bytes_of(digest)))
                .filter(other_labels.field(credential_labels::id).eq(credential_labels::id)),
        ))
    };
    label.all().iter().map(has).reduce(|one, other| Box::new(one.or(other)))
}

fn has_label<'a>(organization: IdBytes, label: &'a LookupDigests) -> Option<Condition<'a, credentials::table>> {
    let has = |digest: &'a Digest| -> Condition<'a, credentials::table> {
        Box::new(exists_row_by_row(
            credential_labels::table
                .filter(credential_labels::organization_id.eq(organization))
                .filter(credential_labels::label.eq(bytes_of(digest)))
                .filter(credential_labels::id.eq(credentials::id)),
        ))
    };
    label.all().iter().map(has).reduce(|one, other| Box::new(one.or(other)))
}

/// The index that leads to the rows of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// An index of credentials.
    Credentials,
    /// The index of a label; credentials are then read by id.
    Label,
}

/// The rows that match the filters of `query`, without its labels and order.
fn fitting(query: &CredentialQuery, lead: Lead, now: Timestamp) -> Boxed<'_> {
    // The caller adds the conditions of labels and of the expiry, by which it orders.
    let ListFilter { namespace, kind, labels: _, health, expires_before: _ } = &query.filter;
    let mut rows = credentials::table.filter(credentials::organization_id.eq(query.organization.stored())).into_boxed();
    if let Some(namespace) = namespace.as_ref().map(Namespace::as_str) {
        rows = match lead {
            Lead::Credentials => rows.filter(credentials::namespace.eq(namespace)),
            Lead::Label => rows.filter(without_index(credentials::namespace).eq(namespace)),
        };
    }
    if let Some(kind) = kind.map(CredentialType::as_str) {
        rows = match lead {
            Lead::Credentials => rows.filter(credentials::kind.eq(kind)),
            Lead::Label => rows.filter(without_index(credentials::kind).eq(kind)),
        };
    }
    let expires_by = |moment: Timestamp| credentials::expires_at.le(moment.as_millis());
    let lasts_past = |moment: Timestamp| credentials::expires_at.gt(moment.as_millis());
    let soon = now.plus_seconds(EXPIRING_SECONDS);
    match health {
        None => rows,
        Some(HealthState::Expired) => rows.filter(expires_by(now)),
        Some(HealthState::Failing) => rows.filter(credentials::check_failed.is_not_null()).filter(lasts_past(now)),
        Some(HealthState::Expiring) => {
            rows.filter(expires_by(soon)).filter(lasts_past(now)).filter(credentials::check_failed.is_null())
        }
        Some(HealthState::Healthy) => rows
            .filter(lasts_past(soon))
            .filter(credentials::check_failed.is_null())
            .filter(credentials::checked_at.is_not_null()),
        Some(HealthState::Unchecked) => rows.filter(lasts_past(soon)).filter(credentials::checked_at.is_null()),
    }
}

/// Newest first, by the label with the fewest rows, else by namespace, type or id.
async fn within_a_window(tx: &Tx<'_>, query: &CredentialQuery, now: Timestamp) -> Result<ListedRows, Failure> {
    let organization = query.organization.stored();
    let before = query.after.map_or(AFTER_ALL_IDS, |after| after.id.stored());
    let Some((end, label)) = rarest(tx, query, before).await? else {
        let mut window = credentials::table
            .filter(credentials::organization_id.eq(organization))
            .filter(credentials::id.lt(before))
            .into_boxed::<Db>();
        if let Some(namespace) = &query.filter.namespace {
            window = window.filter(narrow(credentials::namespace.eq(namespace.as_str())));
        } else if let Some(kind) = query.filter.kind {
            window = window.filter(narrow(credentials::kind.eq(kind.as_str())));
        }
        let last = window.order(credentials::id.desc()).offset(last_of_window()).limit(1).select(credentials::id);
        let end: Option<AnyId> = tx.first(last).await?;
        let mut rows = fitting(query, Lead::Credentials, now).filter(credentials::id.lt(before));
        if let Some(end) = &end {
            rows = rows.filter(credentials::id.ge(end));
        }
        let rows = rows.order(credentials::id.desc()).select(CredentialRow::as_select());
        let rows = tx.page(rows, query.limit).await?;
        return found(rows, end, query);
    };
    let mut labelled = credential_labels::table
        .filter(credential_labels::organization_id.eq(organization))
        .filter(is_label(label))
        .filter(credential_labels::id.lt(before))
        .select(credential_labels::id)
        .into_boxed::<Db>();
    if let Some(end) = &end {
        labelled = labelled.filter(credential_labels::id.ge(end));
    }
    for condition in
        query.labels.iter().filter(|other| *other != label).filter_map(|other| has_label_too(organization, other))
    {
        labelled = labelled.filter(condition);
    }
    let rows = fitting(query, Lead::Label, now)
        .filter(credentials::id.eq_any(labelled))
        .order(credentials::id.desc())
        .select(CredentialRow::as_select());
    let rows = tx.page(rows, query.limit).await?;
    found(rows, end, query)
}

fn last_of_window() -> i64 {
    i64::try_from(LIST_WINDOW).unwrap_or(i64::MAX) - 1
}

/// The page, and the position where the search ended if the page is not full.
fn found(rows: Vec<CredentialRow>, end: Option<AnyId>, query: &CredentialQuery) -> Result<ListedRows, Failure> {
    let rows = rows.into_iter().map(CredentialRow::decode).collect::<Result<Vec<_>, _>>()?;
    let end = end.filter(|_| rows.len() < query.limit).map(|end| position(&end)).transpose()?;
    Ok(ListedRows { rows, searched_to: end })
}

/// A position in the order of creation.
fn position(id: &AnyId) -> Result<ListPosition, Failure> {
    Ok(ListPosition { expires_at: None, id: id.decode("credentials")? })
}

/// Returns the label whose window reaches furthest back, with the last id of the window. Returns no id if all rows of the label
/// are in one window.
async fn rarest<'a>(
    tx: &Tx<'_>,
    query: &'a CredentialQuery,
    before: IdBytes,
) -> Result<Option<(Option<AnyId>, &'a LookupDigests)>, Failure> {
    let mut rarest = None;
    for label in &query.labels {
        let last = credential_labels::table
            .filter(credential_labels::organization_id.eq(query.organization.stored()))
            .filter(is_label(label))
            .filter(credential_labels::id.lt(before))
            .order(credential_labels::id.desc())
            .offset(last_of_window())
            .limit(1)
            .select(credential_labels::id);
        let end: Option<AnyId> = tx.first(last).await?;
        let further = rarest.as_ref().is_none_or(|(other, _)| end < *other);
        if further {
            rarest = Some((end, label));
        }
    }
    Ok(rarest)
}

/// The soonest to expire first.
async fn by_expiry(
    tx: &Tx<'_>,
    query: &CredentialQuery,
    before: Timestamp,
    now: Timestamp,
) -> Result<ListedRows, Failure> {
    let organization = query.organization.stored();
    let from = query.after.and_then(|after| after.expires_at).map_or(i64::MIN, Timestamp::as_millis);
    let after = query.after.map_or(BEFORE_ALL_IDS, |after| after.id.stored());
    use crate::schema::credentials::expires_at;
    let following = expires_at.gt(from).or(expires_at.eq(from).and(credentials::id.gt(after)));
    // The condition of the partial index, and both bounds of the column without the id, so that the index leads to the first row.
    let range = expires_at.lt(Never).and(expires_at.ge(from)).and(expires_at.lt(before.as_millis())).and(following);
    let last = credentials::table
        .filter(credentials::organization_id.eq(organization))
        .filter(range)
        .order((credentials::expires_at, credentials::id))
        .offset(last_of_window())
        .limit(1)
        .select((credentials::id, expires_at));
    let end: Option<(Column<CredentialId>, i64)> = tx.first(last).await?;
    let end = match end {
        Some((id, at)) => Some((id.decode("credentials", &"unknown", "id")?, at)),
        None => None,
    };
    let mut rows = fitting(query, Lead::Credentials, now).filter(range);
    if let Some((id, at)) = end {
        rows = rows.filter(expires_at.lt(at).or(expires_at.eq(at).and(credentials::id.le(id.stored()))));
    }
    for condition in query.labels.iter().filter_map(|label| has_label(organization, label)) {
        rows = rows.filter(condition);
    }
    let rows = rows.order((credentials::expires_at, credentials::id)).select(CredentialRow::as_select());
    let rows = tx.page(rows, query.limit).await?;
    let rows = rows.into_iter().map(CredentialRow::decode).collect::<Result<Vec<_>, _>>()?;
    let end = end.filter(|_| rows.len() < query.limit);
    let searched_to = end.map(|(id, at)| ListPosition { expires_at: Some(Timestamp::from_millis(at)), id });
    Ok(ListedRows { rows, searched_to })
}
