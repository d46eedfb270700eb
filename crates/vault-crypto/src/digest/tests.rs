use super::*;
use crate::testing::instance_keys;

#[test]
fn what_is_looked_up_outlives_the_instance_key() {
    let (before, after) = (HmacDigester::new(instance_keys(1)), HmacDigester::new(instance_keys(9)));
    for purpose in DigestPurpose::ALL {
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
