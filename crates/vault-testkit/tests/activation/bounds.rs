//! Credentials from a storage provider are validated before they are issued, and uses are recorded once a minute.

use super::setting::{ROLE_S3, Setting, request, s3};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::activation::{VendMode, VendedForm};
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::port::{CredentialVendor, ShortLived, VendOrder};
use vault_core::{Error, Refusal};
use vault_testkit::storage::short;

/// Issues this data for every request, with an expiry this number of milliseconds from now.
struct Vendor {
    data: CredentialData,
    lasts: i64,
}

#[async_trait]
impl CredentialVendor for Vendor {
    async fn vend(&self, _data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let expires_at = vault_core::time::Timestamp::from_millis(order.now.as_millis() + self.lasts);
        Ok(ShortLived { data: short(&self.data).unwrap(), expires_at })
    }
}

fn gcs() -> CredentialData {
    let json = br#"{"bucket":"nightly","service_account_key":{"client_email":"a@b.iam.gserviceaccount.com","private_key":"-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n","private_key_id":"0123456789abcdef0123456789abcdef01234567","project_id":"b-project","token_uri":"https://oauth2.googleapis.com/token","type":"service_account"}}"#;
    CredentialData::from_canonical_json(CredentialType::Gcs, json).unwrap()
}

/// Credentials that have expired or belong to another type of storage are not issued.
#[tokio::test]
async fn invalid_storage_credentials_are_not_issued() {
    let setting = Setting::new().await;
    let credential = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let created = setting.integration("nightly", &["imports"]).await;
    let principal = setting.principal(&created.token).await;
    let cases = [(s3(ROLE_S3), 1, true), (s3(ROLE_S3), 0, false), (s3(ROLE_S3), -1, false), (gcs(), 1, false)];
    for (data, lasts, sound) in cases {
        let activations = setting.activations().vendor(Some(Arc::new(Vendor { data, lasts })));
        let strict = activations.activate(&principal, request("imports", VendMode::Short)).await;
        let lenient = activations.activate(&principal, request("imports", VendMode::PreferShort)).await.unwrap();
        let expected = if sound { VendedForm::Short } else { VendedForm::Raw };
        assert_eq!(lenient.credentials[0].vended.form(), expected);
        match strict {
            Ok(activated) => assert!(sound && activated.credentials[0].vended.form() == VendedForm::Short),
            Err(Error::Refused(Refusal::NotVended { credential: found, reason })) => {
                assert_eq!((sound, found, reason), (false, credential, CheckReason::Unexpected));
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A list shows when a credential was last activated, to the minute.
#[tokio::test]
async fn latest_activation_is_recorded_to_the_minute() {
    let setting = Setting::new().await;
    let credential = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let created = setting.integration("nightly", &["imports"]).await;
    let principal = setting.principal(&created.token).await;
    for seconds in [0, 1, 60, 3_600] {
        setting.clock.advance_seconds(seconds);
        setting.activated(&principal, "imports", VendMode::Raw).await.unwrap();
        let shown = setting.vault().show(&setting.member(), credential).await.unwrap();
        assert_eq!(shown.last_activated_at, Some(setting.now().floor_to_minute()));
    }
}
