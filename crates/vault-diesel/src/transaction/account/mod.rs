//! Accounts, invitations and enrolment.

mod admins;
pub(crate) mod change;
mod create;
pub(crate) mod directory;
pub(crate) mod enrolment;
pub(crate) mod invitation_row;
pub(crate) mod invitations;
pub(crate) mod lookup;
pub(crate) mod notices;
pub(crate) mod pending_seed;
pub(crate) mod recovery_codes;
pub(crate) mod row;
