-- The accounts that the handler award_points adds to: one text for SQLite, MySQL and MariaDB.
CREATE TABLE IF NOT EXISTS points_account (
  customer_id BIGINT NOT NULL PRIMARY KEY,
  points BIGINT NOT NULL DEFAULT 0,
  payments BIGINT NOT NULL DEFAULT 0
);
