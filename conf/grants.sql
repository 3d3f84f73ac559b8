-- The least rights that each kind of account needs, for MariaDB 10.6+ and MySQL 8.0.16+. An administrator runs it:
--   1. Replace `millrace.` by your database, and the accounts by yours (`'%'`: from any host; better name yours).
--   2. Make the accounts, each with a password of its own:
--        CREATE USER millrace_worker@'%' IDENTIFIED BY '…';
--   3. The first part; then, as the owner, `millrace schema apply`, since rights on tables want the tables; then all
--      of it. It may be run again at any time.
-- With several task tables (tasks_000, tasks_001, …) repeat the lines of tasks, tasks_done, tasks_failed and tasks_all
-- for each, or grant the same on the whole database where nothing else stands in it.
-- `millrace doctor` tells which right an account lacks.

-- Who makes the tables and changes them: `schema apply`, `upgrade`, `resize`, `check`, and `doctor --scratch`.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, CREATE VIEW, SHOW VIEW ON millrace.* TO millrace_owner@'%';

-- A worker or coordinator: claims, settles, rescues, and looks after the tables.
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.tasks TO millrace_worker@'%';
GRANT SELECT, INSERT, DELETE ON millrace.tasks_done TO millrace_worker@'%';
GRANT SELECT, INSERT, DELETE ON millrace.tasks_failed TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.tasks_keys TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_incarnations TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_beats TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_attempts TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_counters TO millrace_worker@'%';
GRANT SELECT ON millrace.millrace_pauses TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_schedules TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_fan_outs TO millrace_worker@'%';
GRANT SELECT, UPDATE ON millrace.millrace_batches TO millrace_worker@'%';
GRANT SELECT, INSERT, UPDATE ON millrace.millrace_permits TO millrace_worker@'%';
GRANT SELECT, INSERT ON millrace.millrace_audit TO millrace_worker@'%';
GRANT SELECT ON millrace.millrace_schema TO millrace_worker@'%';
-- … and for `config set shards.NAME.slices`, which the leader carries out (else `schema resize`, by the owner):
-- GRANT ALTER ON millrace.tasks TO millrace_worker@'%';
-- GRANT ALTER ON millrace.tasks_done TO millrace_worker@'%';
-- GRANT ALTER ON millrace.tasks_failed TO millrace_worker@'%';
-- GRANT UPDATE ON millrace.millrace_schema TO millrace_worker@'%';
-- … and what the queries of schedules (`from_query`) read, such as:
-- GRANT SELECT ON millrace.customers TO millrace_worker@'%';
-- … and what your handlers write through their tasks' transactions, such as:
-- GRANT SELECT, INSERT, UPDATE ON millrace.points_account TO millrace_worker@'%';

-- `millrace submit`, and a program that adds tasks by the producer library: with keys, and told of duplicates.
GRANT SELECT, INSERT, DELETE ON millrace.tasks TO millrace_submit@'%';
GRANT SELECT ON millrace.tasks_done TO millrace_submit@'%';
GRANT SELECT ON millrace.tasks_failed TO millrace_submit@'%';
GRANT SELECT, INSERT, DELETE ON millrace.tasks_keys TO millrace_submit@'%';
GRANT SELECT ON millrace.millrace_counters TO millrace_submit@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_batches TO millrace_submit@'%';
GRANT SELECT ON millrace.millrace_schema TO millrace_submit@'%';

-- A producer that only inserts, in any language. A key (biz_key) is entered into the ledger by the worker that meets it.
GRANT INSERT ON millrace.tasks TO millrace_producer@'%';

-- People: `batch`, `task list`, `show`, `why`, `retry`, `cancel`, `hold`, `release`, `edit`, pauses, `status`, `doctor`,
-- `alerts test`.
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.tasks TO millrace_operator@'%';
GRANT SELECT, INSERT ON millrace.tasks_done TO millrace_operator@'%';
GRANT SELECT, UPDATE, DELETE ON millrace.tasks_failed TO millrace_operator@'%';
GRANT SELECT ON millrace.tasks_all TO millrace_operator@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.tasks_keys TO millrace_operator@'%';
GRANT SELECT, INSERT, UPDATE ON millrace.millrace_counters TO millrace_operator@'%';
GRANT SELECT ON millrace.millrace_attempts TO millrace_operator@'%';
GRANT SELECT ON millrace.millrace_incarnations TO millrace_operator@'%';
GRANT SELECT ON millrace.millrace_beats TO millrace_operator@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON millrace.millrace_pauses TO millrace_operator@'%';
GRANT SELECT, INSERT ON millrace.millrace_audit TO millrace_operator@'%';
GRANT SELECT, UPDATE ON millrace.millrace_schedules TO millrace_operator@'%';
GRANT SELECT, INSERT, DELETE ON millrace.millrace_fan_outs TO millrace_operator@'%';
GRANT SELECT, UPDATE ON millrace.millrace_batches TO millrace_operator@'%';
GRANT SELECT ON millrace.millrace_permits TO millrace_operator@'%';
GRANT SELECT ON millrace.millrace_schema TO millrace_operator@'%';

-- Options, which concern the whole server.
-- The doorbell: who follows the binary log may read every change of every database in it.
-- GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO millrace_doorbell@'%';
-- The doctor's look at the oldest transaction, and on MySQL at the history:
-- GRANT PROCESS ON *.* TO millrace_worker@'%';
