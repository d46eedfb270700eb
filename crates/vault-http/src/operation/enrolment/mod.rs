//! `{base_url}/enrol`: what an invited person does, by the enrolment code alone.

pub(super) mod confirm;
pub(super) mod draft;
