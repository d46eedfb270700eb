//! Cases of digests and MACs that require secret keys.

use super::crypto::CryptoSubject;
use super::digest::SIGNED;
use super::entry_code::{checkpoint, is_genuine, record};

/// Without the deployment's keys, a MAC of a row, an entry or a checkpoint cannot be computed, whatever key ID it
/// names.
pub async fn macs_of_another_deployment_do_not_verify<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (ours, strange) = (make().await, make().await);
    for purpose in SIGNED {
        let mut code = strange.digester().sign(purpose, &[b"row"]);
        assert!(!ours.digester().is_signed(purpose, &[b"row"], &code), "{purpose:?}");
        code.key = ours.digester().active_key();
        assert!(!ours.digester().is_signed(purpose, &[b"row"], &code), "{purpose:?}");
    }
    let (ours, strange) = (ours.audit_sealer(), strange.audit_sealer());
    let mut entry = strange.seal(record());
    assert!(!is_genuine(&*ours, &entry));
    entry.key = ours.seal(record()).key;
    assert!(!is_genuine(&*ours, &entry));
    let mut sealed = strange.seal_checkpoint(checkpoint());
    assert!(!ours.is_genuine_checkpoint(&sealed));
    sealed.key = ours.seal_checkpoint(checkpoint()).key;
    assert!(!ours.is_genuine_checkpoint(&sealed));
}
