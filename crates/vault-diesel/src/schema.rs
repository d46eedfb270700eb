//! The tables, as `migrations/` leaves them.

diesel::table! {
    instance (singleton) {
        singleton -> BigInt,
        id -> crate::stored::Id,
        root_key_id -> crate::stored::Id,
        instance_key_id -> crate::stored::Id,
        wrapped -> Binary,
        keyring -> Binary,
        created_at -> BigInt,
        restore_epoch -> BigInt,
    }
}

diesel::table! {
    organizations (id) {
        id -> crate::stored::Id,
        credentials -> BigInt,
        key_uses -> BigInt,
    }
}

diesel::table! {
    account_logins (organization_id, account_id) {
        organization_id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        last_step -> BigInt,
        wrong_passcodes -> BigInt,
        last_login_at -> Nullable<BigInt>,
        wrong_at -> Nullable<BigInt>,
        refused_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    attempt_classes (organization_id, account_id, network) {
        organization_id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        network -> Binary,
        attempts -> BigInt,
        latest -> Nullable<BigInt>,
        last_login_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    known_networks (network) {
        network -> Binary,
        last_login_at -> BigInt,
    }
}

diesel::table! {
    recovery_codes (organization_id, account_id, code) {
        organization_id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        code -> Binary,
    }
}

diesel::table! {
    sessions (organization_id, id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        created_at -> BigInt,
        expires_at -> BigInt,
        network -> Text,
        client -> Nullable<Text>,
        last_used_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    account_notices (organization_id, account_id, at, code) {
        organization_id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        at -> BigInt,
        code -> Text,
    }
}

diesel::table! {
    credentials (organization_id, id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        #[sql_name = "type"]
        kind -> Text,
        namespace -> Text,
        version -> BigInt,
        vend -> Text,
        expires_at -> BigInt,
        revision -> BigInt,
        card -> Binary,
        key_id -> crate::stored::Id,
        created_at -> BigInt,
        updated_at -> BigInt,
        checked_at -> Nullable<BigInt>,
        check_since -> Nullable<BigInt>,
        check_failed -> Nullable<Text>,
        last_activated_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    credential_labels (organization_id, label, id) {
        organization_id -> crate::stored::Id,
        label -> Binary,
        id -> crate::stored::Id,
    }
}

diesel::table! {
    credential_uses (organization_id, id, at, activation_id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        at -> BigInt,
        activation_id -> crate::stored::Id,
        integration_id -> crate::stored::Id,
        version -> BigInt,
        form -> Text,
        expires_at -> BigInt,
        ended_at -> Nullable<BigInt>,
        purpose -> Nullable<Text>,
        workload -> Nullable<Text>,
    }
}

diesel::table! {
    check_requests (organization_id, id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        version -> BigInt,
        requested_at -> BigInt,
        taken_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    check_rounds (singleton) {
        singleton -> BigInt,
        seen_at -> BigInt,
        began_at -> Nullable<BigInt>,
        organization_id -> Nullable<crate::stored::Id>,
        credential_id -> Nullable<crate::stored::Id>,
    }
}

diesel::table! {
    hourly_counts (organization_id, subject) {
        organization_id -> crate::stored::Id,
        subject -> Text,
        count -> BigInt,
        since -> BigInt,
    }
}

diesel::table! {
    credential_secrets (id, organization_id, version) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        version -> BigInt,
        data_key -> Binary,
        data -> Binary,
        destroy_at -> Nullable<BigInt>,
        checked_at -> Nullable<BigInt>,
        check_since -> Nullable<BigInt>,
        check_failed -> Nullable<Text>,
    }
}

diesel::table! {
    idempotency_keys (organization_id, account_id, key) {
        organization_id -> crate::stored::Id,
        account_id -> crate::stored::Id,
        key -> Text,
        body -> Binary,
        credential_id -> crate::stored::Id,
        created_at -> BigInt,
        version -> BigInt,
    }
}

diesel::table! {
    entities (organization_id, kind, id) {
        organization_id -> crate::stored::Id,
        kind -> Text,
        id -> crate::stored::Id,
        version -> BigInt,
        due_at -> Nullable<BigInt>,
        last_used_at -> Nullable<BigInt>,
        sealed -> Binary,
    }
}

diesel::table! {
    global_lookups (name, value) {
        name -> Text,
        value -> Text,
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
    }
}

diesel::table! {
    lookups (organization_id, name, value) {
        organization_id -> crate::stored::Id,
        name -> Text,
        value -> Text,
        id -> crate::stored::Id,
    }
}

diesel::table! {
    activations (organization_id, id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        integration_id -> crate::stored::Id,
        namespace -> Text,
        vend -> Text,
        credentials -> BigInt,
        started_at -> BigInt,
        expires_at -> BigInt,
    }
}

diesel::table! {
    erasures (organization_id) {
        organization_id -> crate::stored::Id,
    }
}

diesel::table! {
    audit (id, organization_id) {
        id -> crate::stored::Id,
        at -> BigInt,
        organization_id -> crate::stored::Id,
        actor -> Text,
        account_id -> Nullable<crate::stored::Id>,
        session_id -> Nullable<crate::stored::Id>,
        action -> Text,
        subject -> Text,
        count -> BigInt,
        key_id -> crate::stored::Id,
        code -> Binary,
        integration_id -> Nullable<crate::stored::Id>,
        namespace -> Nullable<Text>,
        purpose -> Nullable<Text>,
        network -> Nullable<Text>,
        credentials -> Nullable<Text>,
        checkpoint -> Nullable<BigInt>,
        request_id -> Nullable<Text>,
        changed_rows -> Nullable<Text>,
        changes -> Nullable<Text>,
    }
}

diesel::table! {
    audit_checkpoints (number) {
        number -> BigInt,
        at -> BigInt,
        entries -> Binary,
        hash -> Binary,
        key_id -> crate::stored::Id,
        code -> Binary,
    }
}

diesel::table! {
    audit_delivery (singleton) {
        singleton -> BigInt,
        checkpoint -> BigInt,
        key_id -> crate::stored::Id,
        code -> Binary,
        holder -> Nullable<Text>,
        until -> Nullable<BigInt>,
    }
}

diesel::table! {
    receiver_status (organization_id, receiver_id) {
        organization_id -> crate::stored::Id,
        receiver_id -> crate::stored::Id,
        last_delivered_at -> Nullable<BigInt>,
        failing_since -> Nullable<BigInt>,
        last_failure -> Nullable<Text>,
        not_before -> BigInt,
    }
}

diesel::table! {
    event_deliveries (organization_id, receiver_id, id) {
        organization_id -> crate::stored::Id,
        receiver_id -> crate::stored::Id,
        id -> crate::stored::Id,
        position -> BigInt,
        kind -> Text,
        subject -> Text,
        body -> Text,
        at -> BigInt,
        code -> Binary,
        state -> Text,
        since -> BigInt,
        attempts -> BigInt,
        attempted_at -> Nullable<BigInt>,
        next_at -> BigInt,
        failure -> Nullable<Text>,
    }
}

diesel::table! {
    event_position (singleton) {
        singleton -> BigInt,
        checkpoint -> BigInt,
        scanned -> BigInt,
        newest -> BigInt,
        code -> Binary,
        holder -> Nullable<Text>,
        until -> Nullable<BigInt>,
    }
}

diesel::table! {
    schema_versions (version) {
        version -> Text,
        applied_at -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(credentials, credential_secrets, credential_labels, lookups);
diesel::allow_tables_to_appear_in_same_query!(credential_uses, credentials);
diesel::allow_tables_to_appear_in_same_query!(activations, entities);
diesel::allow_tables_to_appear_in_same_query!(check_requests, lookups);
diesel::allow_tables_to_appear_in_same_query!(lookups, event_deliveries, receiver_status);
diesel::allow_tables_to_appear_in_same_query!(entities, lookups);
