//! `{base_url}/enrol`: operations of invited users, authenticated only by the enrolment code.

pub(super) mod confirm;
pub(super) mod draft;
pub(super) mod show;
