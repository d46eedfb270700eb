//! Target of the spans of a trace.

/// Target of spans that traces consist of. They do not appear in log lines. Their fields contain no secrets, and about
/// tenants only what log lines contain.
pub const TARGET: &str = "trace";
