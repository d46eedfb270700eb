//! Rules of operations that their schemas do not state.

/// Name of an operation, and its rules.
pub(crate) const NOTES: &[(&str, &str)] = &[
    (
        "log-in",
        "`email` is compared without regard to ASCII case, and its domain can be Unicode or A-labels. `password` is compared \
         byte for byte. `passcode` is a time-based code of the current or previous 30-second step, or a recovery code: 20 \
         digits, with or without hyphens between groups of five, and without white space around it. Each code works once.",
    ),
    (
        "save",
        "`namespace` is compared exactly. A value that is an integration token is refused. `expires_at` is truncated to seconds. \
         `vend` is `any` by default, for keyless types always `short`: `any` gets 422 at `/vend`. `short` gets 422 if the type \
         or the data has no short-lived form. If `verify` succeeds, its result is the first `health` of the version. Keyless \
         types get 422 at `/verify`: check them after the save. If the organization has reached `--max-credentials`, the \
         status is 422 `limit-reached`.",
    ),
    (
        "read",
        "Reads the formats of `orgvault import`. Nothing is saved, logged or audited. Required fields that the text does not \
         set, such as the bucket, are absent from `data`. Files that a text names are not read: the entry is refused.",
    ),
    (
        "find-key",
        "Searches all versions that are kept, of all credentials. Compares fingerprints and the visible ends of key IDs, and \
         decrypts nothing. Locations that the text does not contain are taken from the version. The text is neither stored \
         nor logged. The list is empty if it contains no credential.",
    ),
    (
        "list",
        "With `expires_before`, the list is ordered by expiry, soonest first: `9999-12-31T00:00:00Z` lists all credentials \
         whose expiry is known. `health.state` is the first of `expired`, `failing`, `expiring` (within 14 days), `healthy` \
         and `unchecked` that applies. It never affects activations. A rotation is finished when `previous_version` is absent.",
    ),
    ("delete", "If several requests delete the same credential, exactly one gets 204 and the others get 404."),
    (
        "describe",
        "`null` removes a value, except of `vend`. `expires_at` belongs to the current version. Type and namespace cannot be \
         changed. Only the role `admin` may change `vend` from `short` to `any`: others get 403.",
    ),
    (
        "replace",
        "`data` is the complete data, also if only a location changes. With `stage`, the version replaces an earlier staged one, \
         and is issued only after it is promoted. Version numbers are never reused. Versions can be changed while the \
         namespace is frozen. While `vend` is `short`, data without a short-lived form gets 422 at `/vend`.",
    ),
    ("list-versions", "The current version first, then the others by number, highest first."),
    (
        "promote",
        "A staged or previous version becomes current, and the current version becomes previous. While `vend` is `short`, a \
         version without a short-lived form gets 409.",
    ),
    ("destroy-version", "Deletes the version together with its data key. The current version gets 409."),
    (
        "match",
        "Compares fingerprints and decrypts nothing. Each request is audited. After 10 requests per credential and hour, the \
         status is 429.",
    ),
    (
        "check-credential",
        "Checks the staged version if there is one, else the current one, unless `version` is set. The process with the \
         activation listener runs the check within seconds and stores the result in the `health` of the version. An \
         organization can request 60 checks an hour. 409 `no-checker` if no such process was running in the last minute.",
    ),
    (
        "list-uses",
        "Lists active activations, and those that expired within the last 30 days. Each appears once: a renewal changes \
         `expires_at`, `version` and `form`. `ended_at` is not set when an admin deletes the integration.",
    ),
    (
        "list-holders",
        "`held_until` is the time at which the last activation expires that has not ended. After a rollback, the newer version \
         is the one that is not current.",
    ),
    (
        "show-trust",
        "409 `conflict` if the credential has a saved secret, or if the server has no `--federation-issuer`.",
    ),
    (
        "list-accounts",
        "Accounts and open invitations, newest first. The audit log has the networks of failed logins: \
         `subject=account:<id>&outcome=denied`.",
    ),
    (
        "invite",
        "The enrolment code is valid for 72 hours. 409 `address-in-use` if an account with this address exists, in this or \
         another organization. Each such response is audited, and after 20 within an hour the status is 429 until the hour has \
         passed. 409 `conflict` if this organization has an open invitation for the address. Invitations of other \
         organizations do not conflict: the first user who confirms gets the address. 422 `limit-reached` if the organization \
         has 10,000 accounts and invitations.",
    ),
    (
        "change-account",
        "Revokes all sessions of the account. A body with neither field gets 400, with both 422. The state of an invitation \
         cannot be changed: 409. The last active admin of an organization can be neither demoted nor disabled: 409.",
    ),
    ("delete-account", "The last active admin of an organization cannot be deleted: 409."),
    (
        "unlock-account",
        "Clears the lockout after failed logins. Does not enable time-based passcodes again: re-enrol the account.",
    ),
    (
        "re-enrol",
        "Revokes the account's sessions and immediately destroys its password, TOTP secret and recovery codes. `state` is \
         `re-enrolling` until the user has enrolled. Repeat the request for another code. The user and all other admins get \
         a notice. Your own account, invitations and the last active admin cannot be re-enrolled: 409.",
    ),
    ("show-invitation", "Changes nothing."),
    (
        "enrol",
        "Can be repeated until the confirmation. Each repetition invalidates the earlier secret and recovery codes. A weak \
         password gets 422 at `/password`.",
    ),
    (
        "confirm-enrolment",
        "The enrolment code and this passcode do not work again. A re-enrolled account keeps its role, and stays disabled if it \
         was disabled. 409 `address-in-use` if the address got an account through an invitation of another organization.",
    ),
    (
        "change-set-aside",
        "Changes only the caller's own view, so it is not audited. `until` is at most one year ahead. 422 `limit-reached` if 200 \
         concerns are set aside.",
    ),
    (
        "show-account",
        "`code` of a notice is `login-locked`, `passcode-disabled`, `re-enrolled`, `colleague-re-enrolled` (for admins, with \
         the `account`), `recovery-code-used` or `recovery-codes-low`. Notices are listed for 90 days, newest first.",
    ),
    (
        "change-password",
        "Revokes all other sessions. A wrong factor counts as a failed login. A new password that is weak or equal to the \
         current one gets 422 at `/new_password`, before anything else is checked.",
    ),
    (
        "replace-passcode",
        "A wrong factor counts as a failed login. The new secret takes effect when it is confirmed, within one hour and five \
         attempts.",
    ),
    ("confirm-passcode", "Revokes all other sessions. Without a pending secret, the status is 409."),
    ("replace-recovery-codes", "Revokes all other sessions and deletes a pending TOTP secret."),
    ("list-integrations", "Sorted by name, without tokens."),
    (
        "create-integration",
        "`name` has 1 to 64 printable characters without leading or trailing space, and is unique within the organization, \
         ignoring ASCII case (409). `namespaces` has 1 to 64 patterns: a namespace, compared exactly, or a prefix and `/*` for \
         all present and future namespaces below it. The prefix does not match. `trusts` has at most 10. \
         `managed_by` grants nothing.",
    ),
    ("change-integration", "Tokens of a disabled integration do not work."),
    (
        "rotate-integration",
        "The old token stays valid for `overlap` seconds: 0 to 604,800, by default 86,400. Any older token is revoked.",
    ),
    ("delete-integration", "Revokes all tokens and ends the integration's activations."),
    (
        "create-trust",
        "`claims` has 1 to 16 claims, `/sub` and all `required_claims` of the issuer among them. A name is a JSON pointer \
         (RFC 6901) to the claim. A value is compared exactly, with its JSON type. A string may end in one `*`, directly after \
         a `:` or `/` that follows the owner: `repo:acme/etl:*`, not `repo:*` or `repo:acme*`. Required claims need exact \
         values. `max_lifetime` is 60 to 86,400 seconds, counted from the issuance of the token.",
    ),
    ("delete-trust", "The trust stops working immediately."),
    (
        "list-integration-usage",
        "Counts sealed audit entries since `since`, at most and by default of the last 30 days: `namespace.activated` without \
         renewals, and entries with `outcome=denied`. Integrations without either are omitted.",
    ),
    (
        "add-receiver",
        "An organization has at most ten. Of a URL, only the host is shown later. 422 at `/url` if the URL is not https or the \
         server does not connect to its address. 422 at `/to` if the server sends no mail, or if the address belongs to no \
         active account of the organization.",
    ),
    ("list-receivers", "`state` is `failing` if a delivery was given up and none has succeeded since."),
    ("rotate-receiver-secret", "Messages are signed with both secrets for 24 hours."),
    ("test-receiver", "At most 60 times within an hour."),
    ("list-namespaces", "Lists namespaces that have credentials or are frozen. With `namespace`, only that one."),
    (
        "show-namespace-usage",
        "Counts since `since`, at most and by default of the last 30 days. Activations are regular if there were some on at \
         least four days, and they were on the same days of the week (of which one in four may be missed), or no pause was \
         longer than twice the usual interval. `silent` is true if two of these days of the week have passed without one, or \
         the last activation was more than twice the interval ago. Days are periods of 24 hours since `since`.",
    ),
    (
        "freeze-namespace",
        "Refuses all activations of the namespace until it is thawed. `changed` is false if it was frozen already. Disabled and \
         expired integrations are not counted. If both numbers are 0, check the spelling. Issued credentials still work: \
         revoke them at the storage provider.",
    ),
    (
        "list-audit",
        "An entry appears within about a second. `subject` is `credential:<id>`, `namespace:<name>` or an id. A credential also \
         matches the activations that issued it. Reads are counted per minute, and `at` is the time of writing. In `changes`, \
         an absent `from` or `to` means no value: `version` without `to` was destroyed. `labels` and `description` are \
         encrypted, so only the fact of a change is recorded. Reading the audit log is recorded as `audit.listed`.",
    ),
    (
        "activate",
        "`namespace` is compared exactly and is not a pattern. The activation expires no later than its integration. `raw` (the \
         default) issues the saved credentials, `short` short-lived ones or an error, `prefer-short` short-lived ones where \
         possible. All credentials of the namespace are issued, or none. The audit entry is written before the response.",
    ),
    (
        "renew-activation",
        "The credentials have the form of the activation. `ttl` counts from now. 404 if this integration has no active \
         activation with this id. After a refusal, the activation stays active until it expires.",
    ),
    ("list-activations", "Newest first, without data."),
    ("end-activation", "Issued credentials still work until they expire or are revoked at the storage provider."),
    (
        "check-namespace",
        "The status is 200 also if checks failed. A credential is `usable` if no check failed. With `operations` `[]`, the \
         server only checks that the provider accepts the credential. The limit of active activations does not apply.",
    ),
];
