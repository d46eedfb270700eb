//! Histories of a vault for [`model`](super::model).

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use vault_core::role::Role;

/// One step in a history of a vault. Numbers select accounts, sessions, credentials and so on, modulo the number of
/// existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum VaultCommand {
    /// Advances the clock by milliseconds; may be negative.
    Pass(i64),
    /// Reserves an attempt for an account from a network.
    Reserve(usize, usize),
    /// Reserves an attempt for an unknown address.
    ReserveUnknown,
    /// Records a wrong passcode of an account.
    WrongPasscode(usize),
    /// Logs an account in with a time step, counted from the first, from a network.
    LogInByStep(usize, i64, usize),
    /// Logs an account in with a recovery code from a network.
    LogInByRecoveryCode(usize, usize, usize),
    /// Ends a session.
    EndSession(usize),
    /// Sets an account's role and whether it is active.
    Grant(usize, Role, bool),
    /// Requires re-enrolment of an account, and completes it immediately if the flag is set.
    ReEnrol(usize, bool),
    /// Unlocks an account.
    Unlock(usize),
    /// Enables or disables the organization.
    SetOrganization(bool),
    /// Saves one of a few bodies in a namespace, as a session or an embedder, with an idempotency key or none.
    Save(usize, usize, Option<usize>, usize),
    /// Lists a page of one or all namespaces, as a session or an embedder, after a credential or from the beginning.
    List(usize, Option<usize>, Option<usize>, usize),
    /// Shows a credential, as a session or an embedder.
    Show(usize, usize),
    /// Deletes a credential, as a session or an embedder.
    Delete(usize, usize),
    /// Replaces the organization's key.
    Rotate,
    /// Runs a command about integrations, as a session or the operator.
    Activator(usize, ActivatorCommand),
}

/// One step in a history of integrations, with numbers as in [`VaultCommand`]. The tokens of an integration represent
/// its state when they were issued or when it was last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ActivatorCommand {
    /// Creates an integration with a name.
    Create(usize),
    /// Rotates an integration's token.
    Rotate(usize),
    /// Enables or disables an integration.
    SetState(usize, bool),
    /// Deletes an integration.
    Delete(usize),
    /// Freezes or unfreezes a namespace.
    Freeze(usize, bool),
    /// Reads a namespace's credentials with a token, for an activation or a dry run.
    Take(usize, usize, bool),
    /// Lists the active activations with a token.
    List(usize),
    /// Ends an activation with a token.
    End(usize, usize),
    /// Requests the credentials of an activation with a token.
    IssueCredentials(usize, usize),
    /// Renews an activation with a token.
    Renew(usize, usize),
    /// Aborts an activation.
    Abort(usize),
}

/// Generates commands in proportions that keep long histories interesting.
pub(crate) fn vault_command() -> impl Strategy<Value = VaultCommand> {
    use VaultCommand as Command;
    let few = || 0_usize..4;
    let many = || 0_usize..64;
    prop_oneof![
        3 => (-5_000_i64..120_000).prop_map(Command::Pass),
        1 => (3_000_000_i64..100_000_000).prop_map(Command::Pass),
        // Many attempts for few accounts, so that lockouts occur.
        12 => (0_usize..2, few()).prop_map(|(account, network)| Command::Reserve(account, network)),
        1 => Just(Command::ReserveUnknown),
        2 => few().prop_map(Command::WrongPasscode),
        6 => (few(), 0_i64..200, few()).prop_map(|(account, step, from)| Command::LogInByStep(account, step, from)),
        2 => (few(), few(), few()).prop_map(|(account, code, from)| Command::LogInByRecoveryCode(account, code, from)),
        2 => many().prop_map(Command::EndSession),
        1 => (few(), select(&Role::ALL[..]), proptest::bool::weighted(0.8)).prop_map(|(who, role, on)| Command::Grant(who, role, on)),
        1 => (few(), any::<bool>()).prop_map(|(account, confirmed)| Command::ReEnrol(account, confirmed)),
        1 => few().prop_map(Command::Unlock),
        1 => proptest::bool::weighted(0.8).prop_map(Command::SetOrganization),
        12 => (many(), few(), option::of(few()), few())
            .prop_map(|(who, namespace, key, body)| Command::Save(who, namespace, key, body)),
        5 => (many(), option::of(few()), option::of(many()), 1_usize..6)
            .prop_map(|(who, namespace, after, limit)| Command::List(who, namespace, after, limit)),
        2 => (many(), many()).prop_map(|(who, credential)| Command::Show(who, credential)),
        4 => (many(), many()).prop_map(|(who, credential)| Command::Delete(who, credential)),
        1 => Just(Command::Rotate),
        24 => (many(), activator_command()).prop_map(|(who, command)| Command::Activator(who, command)),
    ]
}

fn activator_command() -> impl Strategy<Value = ActivatorCommand> {
    use ActivatorCommand as Command;
    let few = || 0_usize..4;
    let many = || 0_usize..64;
    let mostly = || proptest::bool::weighted(0.8);
    prop_oneof![
        4 => few().prop_map(Command::Create),
        2 => many().prop_map(Command::Rotate),
        1 => (many(), mostly()).prop_map(|(which, active)| Command::SetState(which, active)),
        1 => many().prop_map(Command::Delete),
        2 => (few(), proptest::bool::weighted(0.3)).prop_map(|(namespace, frozen)| Command::Freeze(namespace, frozen)),
        12 => (many(), few(), proptest::bool::weighted(0.2))
            .prop_map(|(token, namespace, dry)| Command::Take(token, namespace, dry)),
        3 => many().prop_map(Command::List),
        3 => (many(), many()).prop_map(|(token, activation)| Command::End(token, activation)),
        4 => (many(), many()).prop_map(|(token, activation)| Command::IssueCredentials(token, activation)),
        3 => (many(), many()).prop_map(|(token, activation)| Command::Renew(token, activation)),
        1 => many().prop_map(Command::Abort),
    ]
}
