use super::*;
use crate::testing::{instance_keys, key};

const PURPOSES: [DigestPurpose; 11] = [
    DigestPurpose::Address,
    DigestPurpose::AttemptBucket,
    DigestPurpose::Network,
    DigestPurpose::AccountGrant,
    DigestPurpose::InvitationGrant,
    DigestPurpose::EnrolmentCode,
    DigestPurpose::RecoveryCode,
    DigestPurpose::IntegrationGrant,
    DigestPurpose::IntegrationToken,
    DigestPurpose::IdempotentBody,
    DigestPurpose::Cursor,
];

#[test]
fn what_is_looked_up_outlives_the_instance_key() {
    let (before, after) = (HmacDigester::new(instance_keys(1), &key(2)), HmacDigester::new(instance_keys(9), &key(2)));
    for purpose in PURPOSES {
        let made_again = matches!(
            purpose,
            DigestPurpose::AccountGrant
                | DigestPurpose::InvitationGrant
                | DigestPurpose::IntegrationGrant
                | DigestPurpose::Cursor
        );
        let kept = before.digest(purpose, &[b"same"]) == after.digest(purpose, &[b"same"]);
        assert_eq!(kept, !made_again, "{purpose:?}");
    }
}
