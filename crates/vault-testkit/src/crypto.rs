//! Every crypto port, **without any security**: what is sealed can be read, what is keyed can be forged. They
//! keep what use cases rely on: what is bound to one row opens in no other, digests of different purposes
//! differ, a token that was changed is refused.

mod digest;
mod hash;
mod passcode;
mod receiver;
mod seal;
mod token;

pub use digest::{FakeAuditSealer, FakeDigester};
pub use hash::FakeHasher;
pub use passcode::FakePasscodes;
pub use receiver::PlainReceivers;
pub use seal::PlainSealer;
pub use token::FakeTokens;
