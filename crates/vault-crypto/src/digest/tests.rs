use super::*;
use crate::testing::{NOW, instance_keys};

#[test]
fn lookup_digests_survive_replacement_of_instance_key() {
    let [before, after] = [1, 9].map(|number| HmacDigester::new(instance_keys(number), Arc::new(NOW)));
    for purpose in DigestPurpose::ALL {
        let made_again = matches!(
            purpose,
            DigestPurpose::AccountRights
                | DigestPurpose::InvitationGrant
                | DigestPurpose::UnconfirmedSecrets
                | DigestPurpose::Cursor
                // Keyed by the audit key, which differs here.
                | DigestPurpose::RecordedState
        );
        let kept = before.digest(purpose, &[b"same"]) == after.digest(purpose, &[b"same"]);
        assert_eq!(kept, !made_again, "{purpose:?}");
    }
}
