-- Accounts whose owners enrol again, by an invitation that bears the account's id.

-- What the account is until the invitation is taken up; absent: there is none yet.
ALTER TABLE invitations ADD COLUMN state TEXT;
