//! Accounts, invitations and enrolment.

pub(crate) mod accounts;
pub(crate) mod admins;
pub(crate) mod change;
pub(crate) mod directory;
pub(crate) mod enrolment;
pub(crate) mod invitation_row;
pub(crate) mod invitations;
pub(crate) mod lookup;
pub(crate) mod notices;
pub(crate) mod own_account;
pub(crate) mod pending_seed;
pub(crate) mod row;
