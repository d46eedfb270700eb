//! Addition of receivers.

use super::Receivers;
use crate::email::EmailAddress;
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::id::ReceiverId;
use crate::principal::Principal;
use crate::receiver::{
    AddReceiver, Channel, EventKinds, Receiver, ReceiverKey, ReceiverState, ReceiverStatus, StoredReceiver, WebhookUrl,
    check_url, generate_signing_secret,
};
use crate::role::Action;
use secrecy::SecretString;

/// Request for a new receiver.
#[derive(Clone, Debug)]
pub struct AddReceiverRequest {
    /// Channel.
    pub channel: Channel,
    /// URL or e-mail address.
    pub address: String,
    /// Names of its events. An empty list selects all.
    pub events: Vec<String>,
}

/// A new receiver.
pub struct AddedReceiver {
    /// The receiver.
    pub receiver: StoredReceiver,
    /// Signing secret of a webhook, which is shown only once.
    pub secret: Option<SecretString>,
}

/// A validated address.
enum Address {
    Url(WebhookUrl),
    Email(EmailAddress),
}

impl Address {
    fn text(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Email(email) => email.as_str(),
        }
    }

    /// Returns the displayed form. E-mail addresses are not masked, because users of an organization see each other's
    /// addresses anyway.
    fn shown(&self) -> &str {
        match self {
            Self::Url(url) => url.masked(),
            Self::Email(email) => email.as_str(),
        }
    }
}

impl Receivers {
    /// Adds a receiver to the principal's organization, or to the instance for an operator. Mail of an organization is
    /// sent only to its users.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/url`, `/to` and `/events/…`.
    /// - [`Refusal::LimitReached`](crate::Refusal::LimitReached) if the owner has the maximum number of receivers.
    /// - [`Refusal::NoMember`](crate::Refusal::NoMember) if the address belongs to no active account of the organization.
    pub async fn add(&self, principal: &Principal, request: AddReceiverRequest) -> Result<AddedReceiver, Error> {
        let owner = principal.organization();
        principal.administers(Action::ManageReceivers)?;
        let (address, events) = self.validate(&request, owner.is_some())?;
        let now = self.environment.now();
        let key = ReceiverKey { owner, id: ReceiverId::from_uuid(self.environment.ids.ordered(now)) };
        let secret = match request.channel {
            Channel::Webhook => Some(generate_signing_secret(&*self.entropy)?),
            Channel::Email => None,
        };
        let receiver = Receiver {
            channel: request.channel,
            address: SecretString::from(address.text()).into(),
            shown: address.shown().to_owned(),
            events,
            state: ReceiverState::Active,
            secret: secret.clone(),
            previous: None,
            created_at: now,
        };
        let member = match &address {
            Address::Email(email) if owner.is_some() => Some(email.clone()),
            _ => None,
        };
        self.run(principal, AddReceiver { key, receiver: receiver.clone(), member }).await?;
        let receiver = StoredReceiver { key, version: 1, receiver, status: ReceiverStatus::NEW };
        Ok(AddedReceiver { receiver, secret: secret.map(|secret| secret.text().clone()) })
    }

    fn validate(&self, request: &AddReceiverRequest, organization: bool) -> Result<(Address, EventKinds), Error> {
        let address = match request.channel {
            Channel::Webhook => self.validate_url(&request.address).map(Address::Url),
            Channel::Email => self.check_email(&request.address).map(Address::Email),
        };
        let events = EventKinds::parse(&request.events, organization, "/events");
        match (address, events) {
            (Ok(address), Ok(events)) => Ok((address, events)),
            (address, events) => {
                let violations = address.err().into_iter().chain(events.err().into_iter().flatten());
                Err(Error::Invalid(violations.collect()))
            }
        }
    }

    fn validate_url(&self, text: &str) -> Result<WebhookUrl, FieldError> {
        let url = check_url(text, "/url")?;
        if self.guard.as_ref().is_some_and(|guard| !guard.permits(&url)) {
            let detail = "this server does not connect to this address; see --allow-egress";
            return Err(FieldError::new("/url", FieldCode::NotAllowed, detail));
        }
        Ok(url)
    }

    fn check_email(&self, text: &str) -> Result<EmailAddress, FieldError> {
        if self.guard.as_ref().is_some_and(|guard| !guard.sends_mail()) {
            let detail = "this server sends no mail; see --smtp-url";
            return Err(FieldError::new("/to", FieldCode::NotAllowed, detail));
        }
        EmailAddress::parse(text).map_err(|invalid| FieldError::new("/to", FieldCode::Malformed, invalid.0))
    }
}
