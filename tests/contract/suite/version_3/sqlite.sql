BEGIN IMMEDIATE;
CREATE TABLE millrace_schema (
  task_table TEXT PRIMARY KEY,
  slices     INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  applied_at TEXT NOT NULL,
  readable_by INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE millrace_incarnations (
  id         TEXT PRIMARY KEY,
  number     INTEGER NOT NULL UNIQUE,
  worker     TEXT NOT NULL,
  host       TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  lease_us   INTEGER NOT NULL,
  slices     TEXT NOT NULL,
  started_at TEXT NOT NULL,
  dead       INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE millrace_beats (
  id   TEXT PRIMARY KEY,
  beat INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tasks_keys (
  handler    TEXT NOT NULL,
  biz_key    TEXT NOT NULL,
  task_table TEXT NOT NULL,
  task_id    INTEGER NOT NULL,
  entered_at TEXT NOT NULL,
  ended_at   TEXT,
  keep_until TEXT,
  PRIMARY KEY (handler, biz_key)
) WITHOUT ROWID;
CREATE TABLE millrace_attempts (
  task_table  TEXT NOT NULL,
  task_id     INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  at          TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('failed','crashed','rescued')),
  error_class TEXT NOT NULL,
  message     TEXT NOT NULL,
  PRIMARY KEY (task_table, task_id, attempt)
) WITHOUT ROWID;
CREATE TABLE millrace_counters (
  task_table      TEXT NOT NULL,
  handler         TEXT NOT NULL,
  batch           TEXT NOT NULL,
  incarnation     TEXT NOT NULL,
  succeeded       INTEGER NOT NULL,
  cancelled       INTEGER NOT NULL,
  failed          INTEGER NOT NULL,
  attempts_failed INTEGER NOT NULL,
  PRIMARY KEY (task_table, handler, batch, incarnation)
) WITHOUT ROWID;
CREATE TABLE millrace_audit (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  at      TEXT NOT NULL,
  actor   TEXT NOT NULL,
  action  TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail  TEXT NOT NULL
);
CREATE TABLE millrace_pauses (
  what  TEXT PRIMARY KEY,
  actor TEXT NOT NULL,
  since TEXT NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO millrace_schema (task_table, slices, version, applied_at, readable_by) VALUES ('', 0, 3, (strftime('%Y-%m-%d %H:%M:%f','now') || '000'), 3);
CREATE TABLE tasks (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  slice      INTEGER NOT NULL DEFAULT ((random() & 2147483647) % 4)
             CHECK (slice BETWEEN 0 AND 16383),
  state      INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0,2,3)),
  handler    TEXT NOT NULL
             CHECK (handler GLOB '[a-z]*' AND handler NOT GLOB '*[^a-z0-9_.]*' AND length(handler) <= 64 AND length(CAST(handler AS BLOB)) = length(handler)),
  priority   INTEGER NOT NULL DEFAULT 5 CHECK (priority IN (0,1,2,3,4,5,6,7,8,9)),
  run_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000')
             CHECK (run_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]' AND julianday(run_at) IS NOT NULL),
  failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures BETWEEN 0 AND 4100000000),
  attempt    INTEGER NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND 4100000000),
  crashes    INTEGER NOT NULL DEFAULT 0 CHECK (crashes BETWEEN 0 AND 4100000000),
  cancel     INTEGER NOT NULL DEFAULT 0 CHECK (cancel IN (0,1)),
  claimed_by INTEGER NOT NULL DEFAULT 0 CHECK (typeof(claimed_by) = 'integer'),
  claimed_at TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000'),
  urgency    INTEGER GENERATED ALWAYS AS
             (CASE WHEN state = 3 THEN NULL ELSE priority * 10 + min(failures, 9) END) STORED,
  biz_key    TEXT CHECK (length(CAST(biz_key AS BLOB)) <= 190),
  batch      TEXT CHECK (length(CAST(batch AS BLOB)) <= 64),
  last_error TEXT,
  progress   TEXT,
  params     TEXT NOT NULL CHECK (json_valid(params) AND length(CAST(params AS BLOB)) <= 65536),
  CHECK (state <> 2 OR claimed_by <> 0)
);
CREATE INDEX tasks_due ON tasks (slice, handler, urgency, run_at) WHERE urgency IS NOT NULL;
CREATE INDEX tasks_held ON tasks (slice) WHERE urgency IS NULL;
CREATE INDEX tasks_by_key ON tasks (biz_key, handler) WHERE biz_key IS NOT NULL;
CREATE TABLE tasks_done (
  id          INTEGER PRIMARY KEY,
  slice       INTEGER NOT NULL,
  state       INTEGER NOT NULL CHECK (state IN (1,4)),
  handler     TEXT NOT NULL,
  priority    INTEGER NOT NULL,
  run_at      TEXT NOT NULL,
  params      TEXT NOT NULL,
  biz_key     TEXT,
  batch       TEXT,
  failures    INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  crashes     INTEGER NOT NULL,
  claimed_by  TEXT,
  claimed_at  TEXT,
  last_error  TEXT,
  progress    TEXT,
  created_at  TEXT NOT NULL,
  result      TEXT,
  finished_at TEXT NOT NULL
);
CREATE TABLE tasks_failed (
  id          INTEGER PRIMARY KEY,
  slice       INTEGER NOT NULL,
  state       INTEGER NOT NULL CHECK (state IN (-1)),
  handler     TEXT NOT NULL,
  priority    INTEGER NOT NULL,
  run_at      TEXT NOT NULL,
  params      TEXT NOT NULL,
  biz_key     TEXT,
  batch       TEXT,
  failures    INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  crashes     INTEGER NOT NULL,
  claimed_by  TEXT,
  claimed_at  TEXT,
  last_error  TEXT,
  progress    TEXT,
  created_at  TEXT NOT NULL,
  error_class TEXT,
  finished_at TEXT NOT NULL
);
CREATE VIEW tasks_all AS
  SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes, CASE WHEN claimed_by = 0 THEN NULL ELSE coalesce((SELECT i.id FROM millrace_incarnations i WHERE i.number = claimed_by), '#' || claimed_by) END AS claimed_by, CASE WHEN claimed_by = 0 THEN NULL ELSE claimed_at END AS claimed_at, last_error, progress, created_at, NULL AS result, NULL AS error_class, NULL AS finished_at FROM tasks
  UNION ALL SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes, claimed_by, claimed_at, last_error, progress, created_at, result, NULL, finished_at FROM tasks_done
  UNION ALL SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes, claimed_by, claimed_at, last_error, progress, created_at, NULL, error_class, finished_at FROM tasks_failed;
INSERT OR IGNORE INTO millrace_schema (task_table, slices, version, applied_at, readable_by) VALUES ('tasks', 4, 3, (strftime('%Y-%m-%d %H:%M:%f','now') || '000'), 3);
COMMIT;

