-- What a drain touches of the schema of versions 1 and 2: who claims a row is a text, and until then neither the claimer
-- nor the time stands in it, so that every claim makes its row longer.
CREATE TABLE tasks (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  slice SMALLINT UNSIGNED NOT NULL DEFAULT (FLOOR(RAND()*64)),
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
  cancel TINYINT NOT NULL DEFAULT 0,
  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  urgency TINYINT UNSIGNED GENERATED ALWAYS AS (IF(state=3, NULL, priority*10 + LEAST(failures,9))) STORED,
  PRIMARY KEY (id),
  KEY due (slice,handler,urgency,run_at),
  CONSTRAINT tasks_slice CHECK (slice < 16384),
  CONSTRAINT tasks_state CHECK (state IN (0,2,3)),
  CONSTRAINT tasks_claimer CHECK (state <> 2 OR (claimed_by IS NOT NULL AND claimed_by <> '')),
  CONSTRAINT tasks_handler CHECK (handler REGEXP '^[a-z]' AND handler NOT REGEXP '[^a-z0-9_.]'),
  CONSTRAINT tasks_priority CHECK (priority <= 9),
  CONSTRAINT tasks_params CHECK (JSON_VALID(params)),
  CONSTRAINT tasks_size CHECK (LENGTH(params) <= 65536),
  CONSTRAINT tasks_counts CHECK (attempt <= 4294967294 AND failures <= 4294967294 AND crashes <= 4294967294)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE tasks_done (
  id BIGINT UNSIGNED NOT NULL,
  slice SMALLINT UNSIGNED NOT NULL,
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

CREATE TABLE millrace_incarnations (
  id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  dead TINYINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE millrace_pauses (
  what VARCHAR(190) NOT NULL PRIMARY KEY
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE millrace_counters (
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
