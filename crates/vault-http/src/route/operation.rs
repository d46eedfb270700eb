//! What a listener can be asked to do.

/// An operation, as metrics and log name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    LogIn,
    LogOut,
    Save,
    List,
    Show,
    Delete,
    Describe,
    Replace,
    ListVersions,
    Promote,
    DestroyVersion,
    Match,
    CheckCredential,
    ListUses,
    ListAccounts,
    Invite,
    ChangeAccount,
    DeleteAccount,
    UnlockAccount,
    ReEnrol,
    Enrol,
    ConfirmEnrolment,
    ShowAccount,
    ListSessions,
    EndSession,
    ChangePassword,
    ReplacePasscode,
    ConfirmPasscode,
    ReplaceRecoveryCodes,
    ListIntegrations,
    CreateIntegration,
    RotateIntegration,
    ChangeIntegration,
    DeleteIntegration,
    ListTrusts,
    CreateTrust,
    DeleteTrust,
    ListIssuers,
    ListNamespaces,
    FreezeNamespace,
    ThawNamespace,
    ListAudit,
    Activate,
    ListActivations,
    EndActivation,
    RenewActivation,
    CheckNamespace,
    Console,
    ConsoleFile,
    Docs,
    Live,
    Ready,
    Metrics,
    Openapi,
    /// A method or an address that leads nowhere.
    None,
}

impl Operation {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::None as usize + 1;

    /// Whether it asks for no token and costs work: what anybody may ask for.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::LogIn | Self::Enrol | Self::ConfirmEnrolment)
    }

    /// Whether one integration may ask for it only so often: what opens credentials.
    pub(crate) const fn opens(self) -> bool {
        matches!(self, Self::Activate | Self::RenewActivation | Self::CheckNamespace)
    }

    /// The operation's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::LogIn => "log-in",
            Self::LogOut => "log-out",
            Self::Save => "save",
            Self::List => "list",
            Self::Show => "show",
            Self::Delete => "delete",
            Self::Describe => "describe",
            Self::Replace => "replace",
            Self::ListVersions => "list-versions",
            Self::Promote => "promote",
            Self::DestroyVersion => "destroy-version",
            Self::Match => "match",
            Self::CheckCredential => "check-credential",
            Self::ListUses => "list-uses",
            Self::ListAccounts => "list-accounts",
            Self::Invite => "invite",
            Self::ChangeAccount => "change-account",
            Self::DeleteAccount => "delete-account",
            Self::UnlockAccount => "unlock-account",
            Self::ReEnrol => "re-enrol",
            Self::Enrol => "enrol",
            Self::ConfirmEnrolment => "confirm-enrolment",
            Self::ShowAccount => "show-account",
            Self::ListSessions => "list-sessions",
            Self::EndSession => "end-session",
            Self::ChangePassword => "change-password",
            Self::ReplacePasscode => "replace-passcode",
            Self::ConfirmPasscode => "confirm-passcode",
            Self::ReplaceRecoveryCodes => "replace-recovery-codes",
            Self::ListIntegrations => "list-integrations",
            Self::CreateIntegration => "create-integration",
            Self::RotateIntegration => "rotate-integration",
            Self::ChangeIntegration => "change-integration",
            Self::DeleteIntegration => "delete-integration",
            Self::ListTrusts => "list-trusts",
            Self::CreateTrust => "create-trust",
            Self::DeleteTrust => "delete-trust",
            Self::ListIssuers => "list-issuers",
            Self::ListNamespaces => "list-namespaces",
            Self::FreezeNamespace => "freeze-namespace",
            Self::ThawNamespace => "thaw-namespace",
            Self::ListAudit => "list-audit",
            Self::Activate => "activate",
            Self::ListActivations => "list-activations",
            Self::EndActivation => "end-activation",
            Self::RenewActivation => "renew-activation",
            Self::CheckNamespace => "check-namespace",
            Self::Console => "console",
            Self::ConsoleFile => "console-file",
            Self::Docs => "docs",
            Self::Live => "live",
            Self::Ready => "ready",
            Self::Metrics => "metrics",
            Self::Openapi => "openapi",
            Self::None => "none",
        }
    }
}
