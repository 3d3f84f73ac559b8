// The configuration as validated values. One document with the parts engine, handlers, shards, schedules and
// alerts; each part is the same JSON as its node in a cluster. conf/README.md describes every key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/config/policy_config.h"
#include "framework/config/schedule_config.h"
#include "framework/task/built_in.h"
#include "framework/task/retry_ladder.h"

namespace millrace::engine {

enum class OnZooKeeperLoss { Continue, Stop };

struct EngineConfig {
  Micros lease = std::chrono::seconds(10);         // renewed five times in it
  Micros poll = std::chrono::milliseconds(200);    // the bound on finding new work
  Micros rewind = std::chrono::seconds(2);         // how often every group is looked at from its beginning
  std::uint32_t batch = 999;                       // rows a claim or settle, 1 … 999
  Micros stop_timeout = std::chrono::seconds(30);  // after SIGTERM: finish or give back within this
  std::uint32_t max_lost_threads =
      4;  // threads lost to handlers that ignore their limit before the worker is replaced
  OnZooKeeperLoss on_zookeeper_loss = OnZooKeeperLoss::Continue;
  Micros aging{};  // a waiting task gains a priority each time; 0: none does
  ScannersConfig scanners;
  QueuesConfig queues;
  Micros brake_latency{};  // scanning slows where a shard's answers take longer; 0: it does not
  std::string http;        // where the process answers probes, host:port; empty: nowhere
};

enum class OnException { Retry, Fail, Hold };

struct SecretSource {
  std::string file;  // one of the two
  std::string variable;
};

enum class ScanScope { Created, Key };
inline constexpr std::uint32_t kMostScanRows = 1'000'000'000;

// A handler's rows are scanned in rounds. framework/schedule/README.md says what belongs to one.
struct ScanConfig {
  Micros every{};              // one of the two: between the beginnings of two rounds,
  Micros after{};              // or from the end of a round's last task to the next beginning
  std::uint32_t max_rows = 0;  // of a round, in one worker and shard; 0: all of its scope
  ScanScope scope = ScanScope::Created;
  bool operator==(const ScanConfig&) const = default;
};
using ScanRules = std::map<std::string, ScanConfig>;  // by task type

struct HandlerConfig {
  std::uint32_t concurrency = 4;  // threads of its lane, 1 … 256
  std::uint32_t queue = 0;  // tasks claimed ahead of the threads, 1 … 10000; 0: about half a second of work
  std::uint32_t min_threads = 0;  // threads that stay when there is nothing to do; 0: all of them
  Micros keep_alive = std::chrono::minutes(5);  // of the others
  std::uint32_t queue_bytes = 0;                // of the tasks in the queue; 0: any number
  WhenFull when_full = WhenFull::Wait;
  std::uint32_t weight = 1;  // its share beside others of one urgency, 1 … kMostWeight
  std::optional<LimitConfig> limit;
  std::optional<BreakerConfig> breaker;
  std::optional<HoursConfig> hours;
  std::vector<BandConfig> bands;             // apart from each other; see BandsInForce
  std::optional<ScanConfig> scan;            // nullopt: without a pause
  Micros timeout = std::chrono::minutes(1);  // per attempt
  RetryPolicy retry;
  Micros keep = std::chrono::hours(24 * 7);
  std::string export_to;  // folder that gets its finished tasks before they are pruned; empty: none does
  Micros held_for{};      // longest time that its tasks are held; 0: there is none
  std::string group = "default";
  OnException on_exception = OnException::Retry;
  std::string uses;            // the plugin's handler that serves this type; empty: the one of the same name
  std::string options = "{}";  // JSON object handed to the handler
  std::map<std::string, SecretSource> secrets;
  std::uint32_t batch = 0;  // tasks a call for handlers that take batches; 0: as many as the handler takes
  std::set<std::string> given;  // the keys that the document names, such as `timeout` and `retry.delays`

  // The name of the plugin's handler that serves the type that this is of.
  std::string ServedBy(const std::string& type) const { return uses.empty() ? type : uses; }
  // Whether its tasks stand in the finished pool for a while. What is handed to an export has to.
  bool KeepsFinished() const { return keep > Micros(0) || !export_to.empty(); }
  // Those that hold anything back: what is scanned in rounds is in no band.
  std::vector<BandConfig> BandsInForce() const;
  // The one of them that tasks of this urgency (framework/task/task.h) are in.
  std::optional<BandConfig> BandOf(std::uint32_t urgency) const;
};

// What a handler brings in its code. It holds where the configuration does not say; what is absent or empty
// is as built in.
struct CodeDefaults {
  std::optional<std::uint32_t> concurrency;
  std::optional<Micros> timeout;
  std::vector<Micros> delays;
  std::optional<std::uint32_t> max_failures;
  bool next_retry = false;  // it is asked after each failed attempt, unless the configuration has a ladder
};

// Who follows the shard's binary log. An account without a name is that of the shard's url.
struct DoorbellConfig {
  std::string account;
  std::string password_file;
  bool operator==(const DoorbellConfig&) const = default;
};

struct ShardConfig {
  std::string url;
  std::string password_file;
  std::optional<DoorbellConfig> doorbell;  // nullopt: nobody
  std::vector<TableName> tables;           // empty: those that the shard's schema names
  std::uint32_t max_transactions =
      0;                     // of handlers at once, in one worker; 0: one for each thread of its lanes
  std::uint32_t slices = 0;  // load-balance numbers a table, where this process makes the schema; 0: 64
  bool operator==(const ShardConfig&) const = default;
};

// What an alert is about. framework/config/alert_config.cc has the keys of each kind.
enum class AlertKind {
  Failed,
  OldestDue,
  Unowned,
  Unrunnable,
  Refused,
  Crashes,
  WorkerLost,
  Schedule,
  Breaker
};
// As the configuration calls it.
const char* WordOf(AlertKind kind);

// The greatest `more_than` of an alert about events: whoever judges keeps one more of each kind.
inline constexpr std::uint32_t kMostEventsCounted = 2'000;

struct AlertConfig {
  AlertKind kind = AlertKind::Failed;
  std::string handler = "*";  // the task type that it is about; `*`: every one
  std::uint32_t more_than = 0;
  Micros longer_than = std::chrono::minutes(5);
  std::vector<std::string> mail;            // addresses
  std::string webhook;                      // URL; empty: none
  Micros every = std::chrono::minutes(10);  // said again within it by no means
  bool operator==(const AlertConfig&) const = default;
};

// Whose options and secrets name the server for kMailType.
inline constexpr char kSendMailType[] = "send_mail";
inline constexpr char kHttpCallType[] = "http_call";  // likewise for its `ca_file`

struct Config {
  EngineConfig engine;
  // Where there are alerts, the types that carry them are among these.
  std::map<std::string, HandlerConfig> handlers;
  std::map<std::string, ShardConfig> shards;
  std::map<std::string, ScheduleConfig> schedules;
  std::map<std::string, AlertConfig> alerts;

  // The configuration of a task type; the defaults where it has none.
  const HandlerConfig& HandlerFor(const std::string& type) const;
  // Of the task types that are scanned in rounds.
  ScanRules Scans() const;
};

// What keeps messages of alerts from being sent, with its key: mail without a server. Not refused, since each
// part of the configuration is set by itself.
std::vector<std::string> AlertTroubles(const Config& config);

// Parses and checks a whole document; `source` names it in messages (a file or node). Comments (//) are
// allowed. Invalid with every problem, one per line: `file:line: handlers.noop.retry.jitter: …`, an unknown
// key with the nearest known one.
//
// Whether it says lines: they mean nothing to whoever has not seen the text.
enum class LineNumbers { Told, Untold };
Result<Config> ParseConfig(std::string_view text, std::string_view source,
                           UnknownZones zones = UnknownZones::Refused, LineNumbers lines = LineNumbers::Told);
// The text of a configuration file, as ParseConfig reads it. Invalid for one that can't be read.
Result<std::string> ReadConfigFile(const std::string& path);
Result<Config> LoadConfigFile(const std::string& path);

// The document with every key that has a value, set or default: ParseConfig reads the same from it.
std::string ConfigText(const Config& config);
// The configuration of a type, over what its handler brings.
HandlerConfig Over(const CodeDefaults& code, HandlerConfig config);
// What it brings as a task type's object, {"timeout":"5s","retry":{"max_failures":3}}.
std::string DefaultsText(const CodeDefaults& code);
// Invalid with the key and its range where a configuration of that text would be.
Status Validate(const CodeDefaults& code);
// The keys of a task type's object, `retry` and `secrets` among them.
const std::vector<std::string>& HandlerKeyNames();

}  // namespace millrace::engine
