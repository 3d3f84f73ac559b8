-- Millrace, schema version 3, for MySQL 8.0.16+ and MariaDB 10.6+
CREATE TABLE IF NOT EXISTS millrace_schema (
  task_table VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  slices INT UNSIGNED NOT NULL,
  version INT UNSIGNED NOT NULL,
  applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  readable_by INT UNSIGNED NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_incarnations (
  id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  number BIGINT UNSIGNED NOT NULL,
  worker VARCHAR(190) NOT NULL,
  host VARCHAR(255) NOT NULL,
  pid BIGINT NOT NULL,
  lease_us BIGINT NOT NULL,
  slices TEXT NOT NULL,
  started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  dead TINYINT NOT NULL DEFAULT 0,
  UNIQUE KEY number (number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_beats (
  id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  beat BIGINT UNSIGNED NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tasks_keys (
  handler VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  biz_key VARBINARY(190) NOT NULL,
  task_table VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  task_id BIGINT UNSIGNED NOT NULL,
  entered_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  ended_at DATETIME(6) NULL,
  keep_until DATETIME(6) NULL,
  PRIMARY KEY (handler,biz_key),
  KEY by_key (biz_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_attempts (
  task_table VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  task_id BIGINT UNSIGNED NOT NULL,
  attempt INT UNSIGNED NOT NULL,
  at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  incarnation VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  error_class VARCHAR(64) NOT NULL DEFAULT '',
  message TEXT NULL,
  PRIMARY KEY (task_table,task_id,attempt)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_counters (
  task_table VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  handler VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  batch VARCHAR(64) NOT NULL DEFAULT '',
  incarnation VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  succeeded BIGINT NOT NULL DEFAULT 0,
  cancelled BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  attempts_failed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (task_table,handler,batch,incarnation)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_audit (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  actor VARCHAR(190) NOT NULL,
  action VARCHAR(32) NOT NULL,
  subject VARCHAR(190) NOT NULL,
  detail MEDIUMTEXT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS millrace_pauses (
  what VARCHAR(190) NOT NULL PRIMARY KEY,
  actor VARCHAR(190) NOT NULL,
  since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tasks (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  slice SMALLINT UNSIGNED NOT NULL DEFAULT (FLOOR(RAND()*4)),
  state TINYINT NOT NULL DEFAULT 0,
  handler VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority TINYINT UNSIGNED NOT NULL DEFAULT 5,
  run_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  params MEDIUMTEXT NOT NULL DEFAULT ('{}'),
  biz_key VARBINARY(190) NULL,
  batch VARCHAR(64) NULL,
  failures INT UNSIGNED NOT NULL DEFAULT 0,
  attempt INT UNSIGNED NOT NULL DEFAULT 0,
  crashes INT UNSIGNED NOT NULL DEFAULT 0,
  claimed_by BIGINT UNSIGNED NOT NULL DEFAULT 0,
  claimed_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  last_error TEXT NULL,
  progress TEXT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  cancel TINYINT NOT NULL DEFAULT 0,
  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) ON UPDATE CURRENT_TIMESTAMP(6),
  urgency TINYINT UNSIGNED GENERATED ALWAYS AS (IF(state=3, NULL, LEAST(priority,9)*10 + LEAST(failures,9))) STORED,
  PRIMARY KEY (id),
  KEY due (slice,handler,urgency,run_at),
  CONSTRAINT tasks_slice_range CHECK (slice < 16384),
  CONSTRAINT tasks_state_known CHECK (state IN (0,2,3)),
  CONSTRAINT tasks_claimer_set CHECK (state <> 2 OR claimed_by <> 0),
  CONSTRAINT tasks_handler_name CHECK (/*M! state=2 OR */ (handler REGEXP '^[a-z]' AND handler NOT REGEXP '[^a-z0-9_.]')),
  CONSTRAINT tasks_priority_range CHECK (priority <= 9),
  CONSTRAINT tasks_params_json CHECK (/*M! state=2 OR */ JSON_VALID(params)),
  CONSTRAINT tasks_params_size CHECK (/*M! state=2 OR */ LENGTH(params) <= 65536),
  CONSTRAINT tasks_count_range CHECK (attempt <= 4100000000 AND failures <= 4100000000 AND crashes <= 4100000000)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tasks_done (
  id BIGINT UNSIGNED NOT NULL,
  slice SMALLINT UNSIGNED NOT NULL DEFAULT (FLOOR(RAND()*4)),
  state TINYINT NOT NULL DEFAULT 0,
  handler VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority TINYINT UNSIGNED NOT NULL DEFAULT 5,
  run_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  params MEDIUMTEXT NOT NULL DEFAULT ('{}'),
  biz_key VARBINARY(190) NULL,
  batch VARCHAR(64) NULL,
  failures INT UNSIGNED NOT NULL DEFAULT 0,
  attempt INT UNSIGNED NOT NULL DEFAULT 0,
  crashes INT UNSIGNED NOT NULL DEFAULT 0,
  claimed_by VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  claimed_at DATETIME(6) NULL,
  last_error TEXT NULL,
  progress TEXT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  result TEXT NULL,
  finished_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tasks_failed (
  id BIGINT UNSIGNED NOT NULL,
  slice SMALLINT UNSIGNED NOT NULL DEFAULT (FLOOR(RAND()*4)),
  state TINYINT NOT NULL DEFAULT 0,
  handler VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority TINYINT UNSIGNED NOT NULL DEFAULT 5,
  run_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  params MEDIUMTEXT NOT NULL DEFAULT ('{}'),
  biz_key VARBINARY(190) NULL,
  batch VARCHAR(64) NULL,
  failures INT UNSIGNED NOT NULL DEFAULT 0,
  attempt INT UNSIGNED NOT NULL DEFAULT 0,
  crashes INT UNSIGNED NOT NULL DEFAULT 0,
  claimed_by VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  claimed_at DATETIME(6) NULL,
  last_error TEXT NULL,
  progress TEXT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  error_class VARCHAR(64) NOT NULL DEFAULT '',
  finished_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE OR REPLACE VIEW tasks_all AS
  SELECT id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,CASE WHEN claimed_by=0 THEN NULL ELSE COALESCE((SELECT i.id FROM millrace_incarnations i WHERE i.number=claimed_by),CONCAT('#',claimed_by)) END AS claimed_by,CASE WHEN claimed_by=0 THEN NULL ELSE claimed_at END AS claimed_at,last_error,progress,created_at,NULL AS result,NULL AS error_class,NULL AS finished_at FROM tasks
  UNION ALL SELECT id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,claimed_by,claimed_at,last_error,progress,created_at,result,NULL,finished_at FROM tasks_done
  UNION ALL SELECT id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,claimed_by,claimed_at,last_error,progress,created_at,NULL,error_class,finished_at FROM tasks_failed;

INSERT INTO millrace_schema (task_table,slices,version,readable_by) VALUES ('',0,3,3) ON DUPLICATE KEY UPDATE task_table=VALUES(task_table);

INSERT INTO millrace_schema (task_table,slices,version,readable_by) VALUES ('tasks',4,3,3) ON DUPLICATE KEY UPDATE task_table=VALUES(task_table);


