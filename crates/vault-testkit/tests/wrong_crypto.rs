//! Adapters of cryptography that violate one guarantee each: the contract suite must fail on them, in the listed case.

use crate::fakes::{Fakes, fakes};
use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::credential::{CredentialData, CredentialType, Fingerprint, Information, Metadata, SecretBytes};
use vault_core::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use vault_core::email::EmailAddress;
use vault_core::hash_slots::Requester;
use vault_core::id::{AccountId, InstanceId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationName;
use vault_core::passcode::{Digits, TimeStep};
use vault_core::port::*;
use vault_core::role::Role;
use vault_core::sealed::{OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedCredential, SealedMetadata};
use vault_core::sealed::{SealedPassword, SealedSeed};
use vault_core::session::{AccessToken, SessionClaims};
use vault_core::time::Timestamp;
use vault_testkit::contract::*;

/// The violation of an adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    // Sealing
    AnyVersion,
    AnyNamespace,
    AnyType,
    ForgetsInformation,
    UnderAnyKey,
    OneRowSpoilsTheList,
    OneKeyPerList,
    FingerprintsOfAll,
    KeepsDeletedKeys,
    OneKeyId,
    MovesNamesOnly,
    MovesAnything,
    ReportsPlaintext,
    // Digests and codes
    AnyPurpose,
    RunsTogether,
    NeverTwice,
    OneKeyForAll,
    LooksUpElsewhere,
    SignsAnything,
    CountsNotInCodes,
    ColumnsNotInCodes,
    AnyCheckpoint,
    // Tokens
    Viewers,
    IgnoresCase,
    Trims,
    NeverExpires,
    FromTheFuture,
    AnyDeployment,
    // Passwords
    TrimsPasswords,
    CutsPasswords,
    LetsStrangersIn,
    AnyAccount,
    // Passcodes
    ThreeSteps,
    RepeatsDigits,
    OneSeed,
    AnyAccountsSeed,
    DamagedSeeds,
    RecoveryCodesOfAnybody,
}

/// Fakes with a single violation.
struct Broken {
    fakes: Fakes,
    wrong: Wrong,
}

/// A wrong adapter around a correct one.
struct Around<P> {
    right: P,
    wrong: Wrong,
    seen: Mutex<Option<KeyId>>,
}

impl Broken {
    fn around<P>(&self, right: P) -> Arc<Around<P>> {
        Arc::new(Around { right, wrong: self.wrong, seen: Mutex::default() })
    }
}

impl<P> Around<P> {
    fn place(&self, place: CredentialContext) -> CredentialContext {
        if self.wrong == Wrong::AnyVersion { CredentialContext { version: 1, ..place } } else { place }
    }

    fn namespace(&self, namespace: &Namespace) -> Namespace {
        if self.wrong == Wrong::AnyNamespace {
            namespace.as_str()[..6].to_lowercase().parse().unwrap()
        } else {
            namespace.clone()
        }
    }
}

impl SealingSubject for Broken {
    fn start(&self, keys: Arc<dyn KeyRepository>) -> SealingPorts {
        let around = self.around(SealingSubject::start(&self.fakes, keys));
        SealingPorts { sealer: around.clone(), lister: around.clone(), opener: around.clone(), rewrapper: around }
    }
}

#[async_trait]
impl Sealer for Around<SealingPorts> {
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError> {
        if self.wrong == Wrong::FingerprintsOfAll {
            return Ok(Fingerprint::from_digest(&[data.expose().len() as u8; 32]));
        }
        self.right.sealer.fingerprint(organization, data).await
    }

    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
        information: &Information,
    ) -> Result<SealedCredential, SealError> {
        let nothing = Information::from_json("{}".to_owned()).unwrap();
        let information = if self.wrong == Wrong::ForgetsInformation { &nothing } else { information };
        let (context, namespace) = (self.place(context), self.namespace(namespace));
        let seal = async |key| self.right.sealer.seal(key, context, &namespace, data, information).await;
        let sealed = seal(key).await;
        if sealed.is_ok() {
            self.seen.lock().unwrap().get_or_insert(key);
        }
        let seen = *self.seen.lock().unwrap();
        match seen {
            Some(seen) if self.wrong == Wrong::UnderAnyKey && sealed.is_err() => seal(seen).await,
            _ => sealed,
        }
    }

    async fn seal_metadata(
        &self,
        key: KeyId,
        context: CredentialContext,
        metadata: &Metadata,
    ) -> Result<SealedMetadata, SealError> {
        let sealed = self.right.sealer.seal_metadata(key, self.place(context), metadata).await?;
        Ok(SealedMetadata { revision: context.version, ..sealed })
    }

    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        name: &OrganizationName,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError> {
        self.right.sealer.new_organization_keys(organization, name, now)
    }

    async fn verify_organization_keys(&self, of: OrganizationId, keys: &OrganizationKeys) -> Result<(), SealError> {
        self.right.sealer.verify_organization_keys(of, keys).await
    }

    async fn bind_organization_keys(
        &self,
        organization: OrganizationId,
        before: &OrganizationKeys,
        after: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError> {
        self.right.sealer.bind_organization_keys(organization, before, after).await
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        self.right.sealer.reload_keys().await
    }

    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        let key = self.right.sealer.new_organization_key(organization, now)?;
        let id = if self.wrong == Wrong::OneKeyId { KeyId::from_bytes([7; 16]) } else { key.id };
        Ok(OrganizationKeyRecord { id, ..key })
    }
}

#[async_trait]
impl InformationOpener for Around<SealingPorts> {
    async fn open_information<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Information, SealError>>, SealError> {
        let rows: Vec<_> =
            rows.iter().map(|row| SealedInformation { context: self.place(row.context), ..*row }).collect();
        let opened = self.right.lister.open_information(organization, &rows).await?;
        if self.wrong == Wrong::OneRowSpoilsTheList {
            return Ok(opened.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().map(Ok).collect());
        }
        let opened = opened.into_iter().zip(&rows).map(|(opened, row)| {
            let another = self.wrong == Wrong::OneKeyPerList && row.key != rows[0].key;
            if another { Err(SealError::NoKeys) } else { opened }
        });
        Ok(opened.collect())
    }

    async fn open_metadata<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Metadata, SealError>>, SealError> {
        let rows: Vec<_> =
            rows.iter().map(|row| SealedInformation { context: self.place(row.context), ..*row }).collect();
        self.right.lister.open_metadata(organization, &rows).await
    }
}

#[async_trait]
impl Opener for Around<SealingPorts> {
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedCredential,
    ) -> Result<CredentialData, SealError> {
        let kind = if self.wrong == Wrong::AnyType { CredentialType::DirectLink } else { kind };
        let (context, namespace) = (self.place(context), self.namespace(namespace));
        let opened = self.right.opener.open(context, &namespace, kind, sealed).await;
        match opened {
            Err(_) if self.wrong == Wrong::ReportsPlaintext => {
                Err(SealError::Fault(String::from_utf8_lossy(sealed.data.as_bytes()).into()))
            }
            Err(SealError::NoKeys) if self.wrong == Wrong::KeepsDeletedKeys => {
                let json = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;
                Ok(CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap())
            }
            opened => opened,
        }
    }
}

#[async_trait]
impl Rewrapper for Around<SealingPorts> {
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        rows: Vec<SealedRow>,
    ) -> Result<Vec<Result<SealedRow, SealError>>, SealError> {
        let before = rows.clone();
        let moved = self.right.rewrapper.rewrap(organization, to, rows).await?;
        let moved =
            moved.into_iter().zip(before).map(|(moved, before)| match (self.wrong, moved, before.content.clone()) {
                (Wrong::MovesAnything, Err(_), _) => Ok(before),
                (Wrong::MovesNamesOnly, Ok(_), SealedContent::Version(sealed)) => {
                    Ok(SealedRow { content: SealedContent::Version(SealedCredential { key: to, ..sealed }), ..before })
                }
                (_, moved, _) => moved,
            });
        Ok(moved.collect())
    }
}

impl DigestSubject for Broken {
    fn digester(&self) -> Arc<dyn KeyedDigester> {
        self.around(DigestSubject::digester(&self.fakes))
    }

    fn audit_sealer(&self) -> Arc<dyn AuditSealer> {
        self.around(self.fakes.audit_sealer())
    }
}

#[async_trait]
impl KeyedDigester for Around<Arc<dyn KeyedDigester>> {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        let purpose = if self.wrong == Wrong::AnyPurpose { DigestPurpose::Address } else { purpose };
        match self.wrong {
            Wrong::RunsTogether => self.right.digest(purpose, &[&parts.concat()]),
            Wrong::NeverTwice => {
                let salt = format!("{:?}", std::time::Instant::now());
                self.right.digest(purpose, &[&parts.concat(), salt.as_bytes()])
            }
            Wrong::OneKeyForAll => vault_testkit::crypto::FakeDigester::default().digest(purpose, parts),
            _ => self.right.digest(purpose, parts),
        }
    }

    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests {
        match self.wrong {
            Wrong::LooksUpElsewhere => self.right.lookup(purpose, &[parts, &[b"elsewhere".as_slice()]].concat()),
            _ => self.right.lookup(purpose, parts),
        }
    }

    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool {
        self.wrong == Wrong::SignsAnything || self.right.fits(purpose, parts, digest)
    }

    async fn refresh(&self) -> Result<(), SealError> {
        self.right.refresh().await
    }

    fn active_key(&self) -> KeyId {
        self.right.active_key()
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        self.right.sign(purpose, parts)
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], code: &RowMac) -> bool {
        // With a known key, any row is accepted.
        let anything = self.wrong == Wrong::SignsAnything && code.key == self.right.active_key();
        anything || self.right.is_signed(purpose, parts, code)
    }

    async fn load_keys(&self, keys: &[KeyId]) -> Result<(), SealError> {
        self.right.load_keys(keys).await
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        self.right.reload_keys().await
    }
}

impl AuditSealer for Around<Arc<dyn AuditSealer>> {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let mut sealed = self.right.seal(record);
        if self.short() {
            sealed.code = self.short_code(&sealed.record.to_authenticated_bytes());
        }
        sealed
    }

    fn code(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest) {
        let (key, code) = self.right.code(bytes, now);
        (key, if self.short() { self.short_code(bytes) } else { code })
    }

    fn is_code(&self, key: KeyId, bytes: &[u8], code: Digest) -> bool {
        if self.short() { code == self.short_code(bytes) } else { self.right.is_code(key, bytes, code) }
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        self.right.hash_checkpoint(content)
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        self.right.seal_checkpoint(checkpoint)
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        self.wrong == Wrong::AnyCheckpoint || self.right.is_genuine_checkpoint(sealed)
    }
}

impl Around<Arc<dyn AuditSealer>> {
    fn short(&self) -> bool {
        matches!(self.wrong, Wrong::CountsNotInCodes | Wrong::ColumnsNotInCodes)
    }

    /// Uses only the first bytes.
    fn short_code(&self, bytes: &[u8]) -> Digest {
        self.right.hash_checkpoint(&bytes[..bytes.len().min(48)])
    }
}

impl TokenSubject for Broken {
    fn issuer(&self) -> Arc<dyn TokenIssuer> {
        self.around((self.fakes.issuer(), self.fakes.instance()))
    }

    fn instance(&self) -> InstanceId {
        self.fakes.instance()
    }
}

impl TokenIssuer for Around<(Arc<dyn TokenIssuer>, InstanceId)> {
    fn issue(&self, claims: &SessionClaims) -> Result<AccessToken, SealError> {
        let role = if self.wrong == Wrong::Viewers { Role::Viewer } else { claims.role };
        self.right.0.issue(&SessionClaims { role, ..claims.clone() })
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal> {
        let right = &self.right.0;
        let token = match self.wrong {
            Wrong::IgnoresCase => token.to_lowercase(),
            Wrong::Trims => token.trim().to_owned(),
            _ => token.to_owned(),
        };
        match (self.wrong, right.verify(&token, now)) {
            (Wrong::NeverExpires, Err(TokenRefusal::Expired)) => right.verify(&token, now.plus_seconds(-3_600)),
            (Wrong::FromTheFuture, Err(TokenRefusal::NotYetValid)) => right.verify(&token, now.plus_seconds(60)),
            (Wrong::AnyDeployment, Err(TokenRefusal::Claims)) => Ok(SessionClaims {
                instance: self.right.1,
                session: vault_core::id::SessionId::from_bytes([4; 16]),
                account: AccountId::from_bytes([2; 16]),
                organization: OrganizationId::from_bytes([3; 16]),
                role: Role::Editor,
                version: 3,
                issued_at: now,
                expires_at: now.plus_seconds(60),
            }),
            (_, verdict) => verdict,
        }
    }
}

impl PasswordSubject for Broken {
    fn hasher(&self) -> Arc<dyn PasswordHasher> {
        self.around(self.fakes.hasher())
    }
}

impl Around<Arc<dyn PasswordHasher>> {
    fn password(&self, password: &SecretString) -> SecretString {
        let text = password.expose_secret();
        match self.wrong {
            Wrong::TrimsPasswords => text.trim().into(),
            Wrong::CutsPasswords => text.chars().take(72).collect::<String>().into(),
            _ => text.into(),
        }
    }

    fn account(&self, account: AccountId) -> AccountId {
        if self.wrong == Wrong::AnyAccount { AccountId::from_bytes([0; 16]) } else { account }
    }
}

#[async_trait]
impl PasswordHasher for Around<Arc<dyn PasswordHasher>> {
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError> {
        self.right.permit(requester)
    }

    async fn verify(
        &self,
        permit: HashPermit,
        account: Option<AccountId>,
        password: SecretString,
        stored: Option<SealedPassword>,
    ) -> Result<PasswordVerdict, HashError> {
        if stored.is_none() && account.is_some() && self.wrong == Wrong::LetsStrangersIn {
            return Ok(PasswordVerdict::Right { rehashed: None });
        }
        let account = account.map(|account| self.account(account));
        self.right.verify(permit, account, self.password(&password), stored).await
    }

    async fn hash(
        &self,
        permit: HashPermit,
        account: AccountId,
        password: SecretString,
    ) -> Result<SealedPassword, HashError> {
        self.right.hash(permit, self.account(account), self.password(&password)).await
    }
}

impl PasscodeSubject for Broken {
    fn passcodes(&self) -> Arc<dyn PasscodeVerifier> {
        self.around(self.fakes.passcodes())
    }
}

impl Around<Arc<dyn PasscodeVerifier>> {
    const OWNER: AccountId = AccountId::from_bytes([1; 16]);

    fn of(&self, account: AccountId) -> AccountId {
        if self.wrong == Wrong::AnyAccountsSeed { Self::OWNER } else { account }
    }

    /// Returns the original blob of the secret with this ID.
    fn mended(&self, seed: &SealedSeed) -> SealedSeed {
        let mut seed = seed.clone();
        if self.wrong == Wrong::DamagedSeeds {
            let text = format!("not-sealed:{}:{}", Self::OWNER, seed.id);
            seed.blob = vault_core::sealed::Blob::from_bytes(text.into_bytes());
        }
        seed
    }
}

impl PasscodeVerifier for Around<Arc<dyn PasscodeVerifier>> {
    fn new_seed(&self, account: AccountId, email: &EmailAddress) -> Result<NewSeed, SealError> {
        if self.wrong == Wrong::OneSeed {
            return fakes_of_one_seed().new_seed(account, email);
        }
        self.right.new_seed(account, email)
    }

    fn next_seed(&self, account: AccountId, email: &EmailAddress, before: &SealedSeed) -> Result<NewSeed, SealError> {
        self.right.next_seed(account, email, before)
    }

    fn with_new_recovery_key(&self, account: AccountId, before: &SealedSeed) -> Result<SealedSeed, SealError> {
        self.right.with_new_recovery_key(account, before)
    }

    fn new_recovery_codes(&self, account: AccountId, seed: &SealedSeed) -> Result<NewRecoveryCodes, SealError> {
        self.right.new_recovery_codes(account, seed)
    }

    fn recovery_code(&self, account: AccountId, seed: &SealedSeed, digits: &Digits) -> Result<Digest, SealError> {
        match self.wrong {
            // With any TOTP secret.
            Wrong::RecoveryCodesOfAnybody => {
                let blob =
                    vault_core::sealed::Blob::from_bytes(format!("not-sealed:{account}:{}", seed.id).into_bytes());
                self.right.recovery_code(account, &SealedSeed { id: seed.id, blob }, digits)
            }
            _ => self.right.recovery_code(account, seed, digits),
        }
    }

    fn matching_step(
        &self,
        account: AccountId,
        seed: &SealedSeed,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        let (account, seed) = (self.of(account), self.mended(seed));
        let found = self.right.matching_step(account, &seed, digits, now)?;
        match (self.wrong, found) {
            (Wrong::ThreeSteps, None) => {
                self.right.matching_step(account, &seed, digits, now.plus_seconds(-TimeStep::SECONDS))
            }
            (Wrong::RepeatsDigits, None) => Ok(digits
                .expose()
                .starts_with(self.right.code_at(account, &seed, TimeStep::at(now))?.expose_secret())
                .then_some(TimeStep::at(now))),
            (_, found) => Ok(found),
        }
    }

    fn code_at(&self, account: AccountId, seed: &SealedSeed, step: TimeStep) -> Result<SecretString, SealError> {
        self.right.code_at(self.of(account), &self.mended(seed), step)
    }
}

/// Returns fakes that create the same TOTP secret every time.
fn fakes_of_one_seed() -> vault_testkit::crypto::FakePasscodes {
    let ids = Arc::new(vault_testkit::clock::SequentialIds::seeded(5));
    vault_testkit::crypto::FakePasscodes::new(ids)
}

fn passes(case: impl AsyncFnOnce(&()) + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(async {}, "embed/own-store.md", case))).is_ok()
}

/// Each line has the violation of the adapter and the case that detects it. A correct adapter passes the case.
macro_rules! wrong_adapters {
    ($($does:ident: $wrong:ident => $module:ident::$case:ident;)*) => {$(
        #[test]
        fn $does() {
            let with = |wrong| passes(async move |(): &()| {
                $module::$case(async || Broken { fakes: fakes().await, wrong }).await;
            });
            assert!(with(Wrong::Nothing), "a right adapter passes");
            assert!(!with(Wrong::$wrong), "the case did not notice");
        }
    )*};
}

wrong_adapters! {
    it_loses_information: ForgetsInformation => sealing::sealed_data_opens;
    it_opens_data_of_any_type: AnyType => sealing::sealed_data_opens;
    it_seals_under_another_key: UnderAnyKey => sealing::credential_is_sealed_under_the_key_that_is_named;
    it_opens_any_version: AnyVersion => sealing::credential_opens_only_in_its_row;
    it_opens_in_any_namespace: AnyNamespace => sealing::credential_opens_only_in_its_row;
    one_row_spoils_its_lists: OneRowSpoilsTheList => sealing::list_opens_only_for_one_organization;
    its_lists_know_one_key: OneKeyPerList => sealing::list_may_use_several_keys;
    its_fingerprints_are_everybodys: FingerprintsOfAll => sealing::fingerprints_distinguish_data_within_organization;
    it_keeps_deleted_keys: KeepsDeletedKeys => sealing::organization_without_keys_neither_seals_nor_opens;
    its_keys_have_one_id: OneKeyId => sealing::new_keys_have_unique_ids;
    it_moves_names_of_keys_only: MovesNamesOnly => sealing::moved_data_opens_only_with_its_new_key;
    it_moves_what_does_not_open: MovesAnything => sealing::unopenable_data_is_not_resealed;
    its_errors_contain_secrets: ReportsPlaintext => sealing::errors_contain_no_secret;
    its_digests_never_agree: NeverTwice => digest::equal_parts_have_equal_digests;
    its_digests_have_one_purpose: AnyPurpose => digest::digests_of_different_purposes_differ;
    its_parts_run_together: RunsTogether => digest::digest_parts_are_separated;
    its_deployments_have_one_key: OneKeyForAll => digest::digests_of_different_deployments_differ;
    it_takes_any_code: SignsAnything => digest::mac_verifies_only_for_signed_values;
    it_fits_anything: SignsAnything => digest::equal_parts_have_equal_digests;
    it_looks_up_elsewhere: LooksUpElsewhere => digest::equal_parts_have_equal_digests;
    its_entries_have_codes_of_their_beginning: CountsNotInCodes => entry_code::mac_covers_each_field_of_entry;
    its_columns_have_codes_of_their_beginning: ColumnsNotInCodes => entry_code::mac_covers_each_column_of_entry;
    it_takes_any_checkpoint: AnyCheckpoint => entry_code::mac_covers_checkpoint;
    its_tokens_are_viewers: Viewers => token::issued_tokens_verify;
    its_tokens_have_no_case: IgnoresCase => token::every_flipped_bit_is_refused;
    its_tokens_may_have_spaces: Trims => token::other_lengths_are_refused;
    its_tokens_never_expire: NeverExpires => token::token_works_until_it_expires;
    its_tokens_work_before_they_are_made: FromTheFuture => token::token_from_the_future_is_refused;
    its_tokens_work_anywhere: AnyDeployment => token::token_of_another_deployment_is_refused;
    it_trims_passwords: TrimsPasswords => password::only_correct_password_verifies;
    it_cuts_passwords: CutsPasswords => password::passwords_are_not_truncated;
    it_lets_strangers_in: LetsStrangersIn => password::missing_password_rejects_every_password;
    its_passwords_are_anybodys: AnyAccount => password::row_copied_to_another_account_refuses_both_passwords;
    it_takes_three_steps: ThreeSteps => passcode::current_and_previous_step_are_accepted;
    it_takes_the_beginning_of_a_code: RepeatsDigits => passcode::recovery_code_is_not_time_based;
    it_has_one_seed: OneSeed => passcode::every_seed_has_unique_passcodes;
    its_seeds_are_anybodys: AnyAccountsSeed => passcode::seed_opens_only_in_its_row;
    it_takes_damaged_seeds: DamagedSeeds => passcode::every_flipped_byte_of_a_seed_is_refused;
    its_recovery_codes_are_anybodys: RecoveryCodesOfAnybody
        => passcode::ten_recovery_codes_are_found_by_digest;
}

/// Cases that require cryptography, which fakes do not pass.
macro_rules! fakes_fail {
    ($($module:ident { $($case:ident)* })*) => {$($(
        #[test]
        fn $case() {
            assert!(!passes(async move |(): &()| $module::$case(fakes).await), "nothing was hidden or proved");
        }
    )*)*};
}

fakes_fail! {
    sealed {
        every_flipped_byte_is_refused
        every_other_length_is_refused
        equal_data_has_different_ciphertexts
        sealed_data_contains_no_plaintext
        keys_of_another_deployment_open_nothing
    }
    keyed {
        macs_of_another_deployment_do_not_verify
    }
    forgery {
        tokens_cannot_be_spliced
        debug_of_tokens_shows_no_content
    }
    verifier {
        every_damaged_row_is_refused
        no_password_is_stored
        equal_passwords_are_stored_differently
        verifier_of_another_deployment_does_not_open
    }
    seed {
        sealed_seed_contains_no_plaintext
        seed_of_another_deployment_does_not_open
    }
}
