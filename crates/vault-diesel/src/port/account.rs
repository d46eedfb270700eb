//! The ports of accounts and invitations.

use super::{Database, DieselStore};
use crate::transaction::account::invitations::FindInvitation;
use async_trait::async_trait;
use vault_core::Command;
use vault_core::account::ListedAccount;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::{
    AccountKey, AccountRepository, ChangeAccount, ChangeInvitation, ConfirmEnrolment, CreateAccount, CreateInvitation,
    Find, FoundAccount, InvitationRepository, List, OpenInvitation, StoreError, WriteDraft,
};
use vault_core::principal::Scope;
use vault_core::time::Timestamp;

#[async_trait]
impl<D: Database> AccountRepository for DieselStore<D> {
    async fn create_account(&self, command: Command<CreateAccount>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn find_account(&self, query: Find<AccountKey, Scope>) -> Result<Option<FoundAccount>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }

    async fn list_accounts(&self, query: List<(OrganizationId, AccountId)>) -> Result<Vec<ListedAccount>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }

    async fn change_account(&self, command: Command<ChangeAccount>) -> Result<(), StoreError> {
        self.run(command).await
    }
}

#[async_trait]
impl<D: Database> InvitationRepository for DieselStore<D> {
    async fn create_invitation(&self, command: Command<CreateInvitation>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError> {
        self.answer(None, FindInvitation { code, now }).await
    }

    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn change_invitation(&self, command: Command<ChangeInvitation>) -> Result<(), StoreError> {
        self.run(command).await
    }
}
