//! Cases of rows that are found and verified by digests under more than one lookup key, and of rekeying them.

use super::ContractStore;
use super::tools::{Settled as _, request_digest, with};
use super::world::{Holder, World};
use crate::commands::CredentialCommands as _;
use vault_core::Refusal;
use vault_core::account::AccountKey;
use vault_core::audit::AuditAction;
use vault_core::credential::{ListCredentials, RelabelCredential};
use vault_core::cursor::ListFilter;
use vault_core::digest::{Digest, LookupDigests};
use vault_core::id::AccountId;
use vault_core::login::{Reservation, ReserveAttempt};
use vault_core::port::{InstancePart, LookupMove};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// The digests of an address under an old and a new key.
#[derive(Clone, Copy)]
struct Address {
    old: Digest,
    new: Digest,
}

impl Address {
    fn of(holder: &Holder) -> Self {
        let email = holder.signed.grant.email.as_str();
        Self { old: request_digest(&format!("old {email}")), new: request_digest(&format!("new {email}")) }
    }

    /// Returns the digests in a process that has only the old key.
    fn before(self) -> LookupDigests {
        self.old.into()
    }

    /// Returns the digests while processes may have only the old key, or have the new one and write with the old one.
    fn unsettled(self) -> LookupDigests {
        LookupDigests::new(self.old, [self.new], [])
    }

    /// Returns the digests while other processes may still use the old key.
    fn undrained(self) -> LookupDigests {
        LookupDigests::new(self.new, [self.old], [])
    }

    /// Returns the digests while rows are moved.
    fn drained(self) -> LookupDigests {
        LookupDigests::new(self.new, [], [self.old])
    }

    /// Returns the digests after the old key is destroyed.
    fn after(self) -> LookupDigests {
        self.new.into()
    }

    /// Returns all states that can exist concurrently, in order.
    fn all(self) -> [LookupDigests; 5] {
        [self.before(), self.unsettled(), self.undrained(), self.drained(), self.after()]
    }
}

impl World<'_> {
    async fn create(&self, holder: &Holder, address: LookupDigests) -> Result<(), Refusal> {
        let mut command = self.create_account(holder);
        command.payload.address = address;
        self.run(command).await.decided()
    }

    async fn is_found(&self, holder: &Holder, address: LookupDigests) -> bool {
        let found = self.find(Principal::Operator, AccountKey::Address(address.clone())).await.is_some();
        let attempt = ReserveAttempt { address, ..self.attempt(holder.address, self.network()) };
        let reserved = self.reserve_attempt(attempt).await;
        assert_eq!(matches!(reserved, Reservation::Account(_)), found, "a login finds what an operator does");
        found
    }

    async fn move_one(&self, part: InstancePart, account: AccountId, address: Digest) -> usize {
        let place = (self.organization, *account.as_uuid());
        self.store.rekey_lookups(vec![LookupMove { part, place, address }]).await.unwrap()
    }
}

/// An address belongs to one account, whichever keys the processes have: of two states that can coexist, the second is
/// rejected.
pub async fn address_is_unique_under_two_keys(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for first in 0..4_usize {
        for second in first.saturating_sub(1)..(first + 2).min(4) {
            let (holder, other) = (world.new_holder(Role::Viewer), world.new_holder(Role::Viewer));
            let address = Address::of(&holder);
            assert_eq!(world.create(&holder, address.all()[first].clone()).await, Ok(()));
            let again = world.create(&other, address.all()[second].clone()).await;
            assert_eq!(again, Err(Refusal::AddressTaken), "{first} before {second}");
            // The rejected request left no rows.
            let third = world.new_holder(Role::Viewer);
            assert_eq!(world.create(&third, Address::of(&other).all()[second].clone()).await, Ok(()));
            assert!(world.is_found(&holder, address.drained()).await);
        }
    }
}

/// An invitation is found, and is unique in its organization, under two keys.
pub async fn invitation_is_unique_under_two_keys(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for first in 0..4_usize {
        let ((invitation, _), (again, _)) = (world.invitation(Role::Viewer), world.invitation(Role::Viewer));
        let email = invitation.grant.email.as_str();
        let address =
            Address { old: request_digest(&format!("old {email}")), new: request_digest(&format!("new {email}")) };
        let invite = async |invitation, digests: &LookupDigests| {
            let mut command = world.invite(&Principal::Operator, invitation, address.old);
            command.payload.address = digests.clone();
            world.invites(command).await
        };
        invite(&invitation, &address.all()[first]).await.unwrap();
        for second in first.saturating_sub(1)..(first + 2).min(4) {
            let outcome = invite(&again, &address.all()[second]).await;
            assert_eq!(outcome, Err(Refusal::AlreadyInvited), "{first} before {second}");
        }
        let account = invitation.grant.account;
        world.move_one(InstancePart::Invitations, account, address.new).await;
        assert_eq!(world.move_one(InstancePart::Invitations, account, address.new).await, 0);
        let find = async |digests| world.find(Principal::Operator, AccountKey::Address(digests)).await;
        assert!(find(address.after()).await.is_some() && find(address.before()).await.is_none());
    }
}

/// A rekeyed account is found only under the new key. Its deletion makes the address available.
pub async fn rekeyed_account_is_found_under_new_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for entered in 0..4 {
        let holder = world.new_holder(Role::Viewer);
        let (address, account) = (Address::of(&holder), holder.signed.grant.account);
        world.create(&holder, address.all()[entered].clone()).await.unwrap();
        assert!(world.is_found(&holder, address.drained()).await);
        let moved = world.move_one(InstancePart::Accounts, account, address.new).await;
        assert_eq!(moved, usize::from(entered != 3), "one that was entered under the new key alone stays");
        assert_eq!(world.move_one(InstancePart::Accounts, account, address.new).await, 0);
        assert!(world.is_found(&holder, address.after()).await);
        assert!(!world.is_found(&holder, address.before()).await);
        let twin = world.new_holder(Role::Viewer);
        assert_eq!(world.create(&twin, address.drained()).await, Err(Refusal::AddressTaken));
        let nonexistent = world.new_holder(Role::Viewer).signed.grant.account;
        assert_eq!(world.move_one(InstancePart::Accounts, nonexistent, address.old).await, 0, "there is none");
    }
}

/// A credential gets other digests of its labels only if it is unchanged since it was read. While there are two keys, it is found by
/// digests under either.
pub async fn credential_is_rekeyed_only_if_unchanged(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal: Principal = world.log_in(&world.holder(Role::Editor).await).await.into();
    let (old, new, others) =
        (request_digest("old label"), request_digest("new label"), request_digest("another label"));
    let save = |labels: &[Digest]| with(world.save(&principal), |save| save.labels = labels.to_vec());
    let (first, second, third) = (save(&[old, others]), save(&[new]), save(&[others]));
    let ids = [&first, &second, &third].map(|command| command.payload.id);
    for command in [first, second, third] {
        world.store.save_credential(command).await.unwrap();
    }
    let label = LookupDigests::new(new, [], [old]);
    let found = async |labels: &[LookupDigests]| {
        world.page(&principal, ListCredentials { labels: labels.to_vec(), ..world.list(&principal) }).await
    };
    let soon = async |labels: &[LookupDigests]| {
        let filter = ListFilter { expires_before: Some(world.now().plus_seconds(1)), ..ListFilter::default() };
        let listed = ListCredentials { labels: labels.to_vec(), ..world.list_by(&principal, filter) };
        world.page(&principal, listed).await
    };
    assert_eq!(found(std::slice::from_ref(&label)).await, [ids[1], ids[0]], "newest first, whichever key");
    assert_eq!(found(&[label.clone(), others.into()]).await, [ids[0]]);
    assert_eq!(found(&[others.into(), label.clone()]).await, [ids[0]]);
    assert_eq!(soon(std::slice::from_ref(&label)).await, [], "none expires");

    let relabel = async |revision| {
        let labels = vec![new, request_digest("another label, moved")];
        let relabel = RelabelCredential { organization: world.organization, id: ids[0], revision, labels };
        world.operate(&Principal::Operator, relabel).await.unwrap()
    };
    assert!(!relabel(2).await, "it has another revision");
    assert_eq!(found(&[old.into()]).await, [ids[0]]);
    assert!(relabel(1).await);
    assert_eq!(found(&[new.into()]).await, [ids[1], ids[0]]);
    assert_eq!(found(&[old.into()]).await, []);
    assert_eq!(found(&[request_digest("another label, moved").into()]).await, [ids[0]]);
    let whole = world.store.whole_credential(world.organization, ids[0]).await.unwrap().unwrap();
    assert_eq!(whole.versions.current.revision, 1);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 3, "no entry is made of it");
}
