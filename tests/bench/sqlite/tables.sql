-- What a drain touches of the tables on SQLite, with a number as the claimer.
CREATE TABLE tasks (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  slice      INTEGER NOT NULL DEFAULT ((random() & 2147483647) % 64) CHECK (slice BETWEEN 0 AND 16383),
  state      INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0,2,3)),
  handler    TEXT NOT NULL CHECK (handler GLOB '[a-z]*' AND handler NOT GLOB '*[^a-z0-9_.]*'
             AND length(handler) <= 64 AND length(CAST(handler AS BLOB)) = length(handler)),
  priority   INTEGER NOT NULL DEFAULT 5 CHECK (priority IN (0,1,2,3,4,5,6,7,8,9)),
  run_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000')
             CHECK (run_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]'
             AND julianday(run_at) IS NOT NULL),
  params     TEXT NOT NULL CHECK (json_valid(params) AND length(CAST(params AS BLOB)) <= 65536),
  biz_key    TEXT CHECK (length(CAST(biz_key AS BLOB)) <= 190),
  batch      TEXT CHECK (length(CAST(batch AS BLOB)) <= 64),
  failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures BETWEEN 0 AND 4294967294),
  attempt    INTEGER NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND 4294967294),
  crashes    INTEGER NOT NULL DEFAULT 0 CHECK (crashes BETWEEN 0 AND 4294967294),
  cancel     INTEGER NOT NULL DEFAULT 0 CHECK (cancel IN (0,1)),
  claimed_by INTEGER NOT NULL DEFAULT 0,
  claimed_at TEXT,
  last_error TEXT,
  progress   TEXT,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f','now') || '000'),
  urgency    INTEGER GENERATED ALWAYS AS
             (CASE WHEN state = 3 THEN NULL ELSE priority * 10 + min(failures, 9) END) STORED,
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
  claimed_by  INTEGER NOT NULL,
  claimed_at  TEXT,
  last_error  TEXT,
  progress    TEXT,
  created_at  TEXT NOT NULL,
  result      TEXT,
  finished_at TEXT NOT NULL
);

CREATE TABLE millrace_incarnations (id INTEGER PRIMARY KEY, dead INTEGER NOT NULL DEFAULT 0);

CREATE TABLE millrace_counters (
  task_table      TEXT NOT NULL,
  handler         TEXT NOT NULL,
  batch           TEXT NOT NULL,
  incarnation     INTEGER NOT NULL,
  succeeded       INTEGER NOT NULL,
  cancelled       INTEGER NOT NULL,
  failed          INTEGER NOT NULL,
  attempts_failed INTEGER NOT NULL,
  PRIMARY KEY (task_table, handler, batch, incarnation)
) WITHOUT ROWID;
