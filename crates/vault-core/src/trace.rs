//! What marks spans that make up a trace.

/// The target of spans that traces consist of. Log lines show none of them. Their fields hold nothing secret, and nothing of a
/// tenant but what log lines have.
pub const TARGET: &str = "trace";
