//! Every crypto port, **without any security**: sealed values can be read, and MACs can be forged. They have the
//! properties that use cases rely on: a value that is bound to one row cannot be decrypted in another, digests of
//! different purposes differ, and a changed token is rejected.

mod digest;
mod hash;
mod passcode;
mod seal;
mod token;

pub use digest::{FakeAuditSealer, FakeDigester};
pub use hash::FakeHasher;
pub use passcode::FakePasscodes;
pub use seal::PlainSealer;
pub use token::FakeTokens;
