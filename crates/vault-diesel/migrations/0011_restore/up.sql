-- Raised by each restore, so that access tokens from before it no longer work; absent: there was none.
ALTER TABLE instance ADD COLUMN restore_epoch BIGINT;
