#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "coordinator/app/cluster/cluster_plan.h"
#include "coordinator/app/config/config_key.h"
#include "coordinator/app/input/csv_reader.h"
#include "coordinator/app/input/input_rows.h"
#include "coordinator/app/input/json_row.h"
#include "coordinator/coordination/config_change.h"
#include "coordinator/coordination/config_layers.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/zookeeper/address.h"
#include "coordinator/member/assignment.h"
#include "coordinator/member/breaker_keeper.h"
#include "coordinator/planner/named_input.h"
#include "framework/base/time_text.h"
#include "framework/base/utf8.h"
#include "framework/config/config.h"
#include "framework/doorbell/binlog_reader.h"
#include "framework/doorbell/datagram.h"
#include "framework/policy/load_balance.h"
#include "framework/policy/pauses.h"
#include "framework/store/query_check.h"
#include "framework/store/query_pages.h"
#include "framework/store/sql_guard.h"
#include "framework/store/url.h"
#include "framework/task/slice_name.h"
#include "tests/fuzz/target.h"

namespace millrace::engine::fuzz {
namespace {

void Configuration(std::string_view input) {
  const auto config = ParseConfig(input, "fuzz.json");
  if (!config) {
    RequireRefusal(config);
    std::istringstream lines(config.error().message);
    for (std::string line; std::getline(lines, line);)
      Require(line.starts_with("fuzz.json:"), "every line of a refusal names the file");
    return;
  }
  const std::string text = ConfigText(*config);
  const auto again = ParseConfig(text, "again.json");
  Require(again.has_value(), "what was accepted is accepted as it is written");
  Require(ConfigText(*again) == text, "and means the same");
}

void Layers(std::string_view input) {
  ConfigLayers layers;
  for (const char* part : kConfigParts) {
    layers.SetPart(part, input);
    const Status valid = ValidateConfigPart(part, input);
    if (!valid) RequireRefusal(valid);
    Require(valid.has_value() || input.empty() || layers.Refusals().contains(part), "a bad part is refused");
  }
  Require(layers.Effective() != nullptr, "there is always a configuration in force");
  (void)layers.Values();
}

void Csv(std::string_view input) {
  std::istringstream stream{std::string(input)};
  CsvReader reader(stream);
  std::size_t line = 0;
  std::size_t records = 0;
  while (const auto record = reader.Next()) {
    Require(record->line > line || records == 0, "every record begins on a line of its own");
    line = record->line;
    Require(++records <= input.size(), "a record takes a byte at least");
    if (!record->problem.empty()) continue;
    std::string quoted;
    for (const std::string& field : record->fields) {
      quoted += quoted.empty() ? "\"" : ",\"";
      for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
      quoted += '"';
    }
    std::istringstream rewritten(quoted);
    const auto again = CsvReader(rewritten).Next();
    Require(again && again->problem.empty() && again->fields == record->fields,
            "a record reads back as it was");
  }
  NewTask defaults;
  defaults.handler = "noop";
  const auto rows =
      ReadCsv(std::make_unique<std::istringstream>(std::string(input)), "fuzz.csv", {defaults, "id"});
  if (!rows) return RequireRefusal(rows);
  while (const auto row = (*rows)->Next()) {
    if (!row->task) {
      RequireRefusal(row->task);
      continue;
    }
    Require(CheckParams(row->task->params).has_value(), "params are JSON");
    Require(Validate(*row->task).has_value(), "a row is a task that may be added");
  }
}

void Jsonl(std::string_view input) {
  NewTask defaults;
  defaults.handler = "noop";
  for (const char* key_column : {"", "id"}) {
    const auto task = LineToTask(input, defaults, key_column);
    if (!task) {
      RequireRefusal(task);
      continue;
    }
    Require(CheckParams(task->params).has_value(), "params are JSON");
    Require(IsUtf8(task->params), "params are UTF-8");
    const auto again = LineToTask("{\"params\":" + task->params + "}", defaults, "");
    Require(again && nlohmann::json::parse(again->params) == nlohmann::json::parse(task->params),
            "params read back as they were");
  }
}

void StoreUrls(std::string_view input) {
  const auto url = ParseStoreUrl(input);
  if (!url) return RequireRefusal(url);
  const bool mysql = url->kind == StoreUrl::Kind::Mysql;
  Require(mysql ? !url->host.empty() && !url->database.empty() && url->port != 0 : !url->path.empty(),
          "an accepted address leads somewhere");
}

void ZookeeperAddresses(std::string_view input) {
  const auto address = ParseZookeeperAddress(input);
  if (!address) return RequireRefusal(address);
  const auto again = ParseZookeeperAddress(address->hosts + address->chroot);
  Require(again && again->hosts == address->hosts && again->chroot == address->chroot,
          "an address reads back as it was");
  (void)ChrootCommands(*address);
}

void Durations(std::string_view input) {
  const auto duration = ParseDuration(input);
  if (!duration) return RequireRefusal(duration);
  Require(*duration >= Micros(0), "no duration is negative");
  const auto again = ParseDuration(FormatDuration(*duration));
  Require(again && *again == *duration, "a duration reads back as it was");
}

void Times(std::string_view input) {
  const auto time = ParseTime(input);
  if (!time) return RequireRefusal(time);
  const auto again = ParseTime(FormatTime(*time));
  Require(again && *again == *time, "a time reads back as it was");
}

void LoadBalance(std::string_view input) {
  const auto numbers = ParseLoadBalance(input);
  if (!numbers) return RequireRefusal(numbers);
  Require(!numbers->empty() && numbers->back() < kMaxSlices, "numbers are those of slices");
  Require(std::adjacent_find(numbers->begin(), numbers->end(), std::greater_equal<>()) == numbers->end(),
          "numbers are sorted, each once");
  const auto again = ParseLoadBalance(FormatLoadBalance(*numbers));
  Require(again && *again == *numbers, "numbers read back as they were");
}

void Simulate(std::string_view input) {
  const auto state = ReadPlanInput(input, "fuzz.json");
  if (!state) {
    RequireRefusal(state);
    Require(state.error().message.starts_with("fuzz.json:"), "a refusal names the file");
    return;
  }
  const NumberedInput numbered = Number(*state);
  const Plan plan = SolvePlan(numbered.input);
  PlanInput settled = numbered.input;
  for (std::size_t i = 0; i < plan.owners.size(); ++i) settled.slices[i].owner = plan.owners[i];
  Require(plan.owners.size() == numbered.slices.size(), "a plan speaks of every slice");
  Require(SolvePlan(settled).moves.empty(), "solving again changes nothing");
}

template <class Document>
void ReadsBack(std::string_view input, Result<Document> (*read)(std::string_view)) {
  const auto document = read(input);
  if (!document) return RequireRefusal(document);
  const std::string text = ToText(*document);
  const auto again = read(text);
  Require(again.has_value(), "a document reads back");
  Require(ToText(*again) == text, "and says the same");
}

void Workers(std::string_view input) { ReadsBack(input, ReadWorker); }
void Limits(std::string_view input) { ReadsBack(input, ReadLimits); }
void Epochs(std::string_view input) { ReadsBack(input, ReadEpoch); }
void Candidates(std::string_view input) { ReadsBack(input, ReadCandidate); }
void Expects(std::string_view input) { ReadsBack(input, ReadExpect); }
void Plans(std::string_view input) { ReadsBack(input, ReadPlan); }

// Whatever stands there, the breaker is open.
void Breakers(std::string_view input) {
  const std::string text = ToText(ReadBreaker(input));
  Require(ToText(ReadBreaker(text)) == text, "a breaker's node reads back");
}

void Notes(std::string_view input) {
  for (const MadeAgain& note : ReadMadeAgain(input))
    Require(note.nodes.size() * 2 <= input.size(), "what is told stands there");
}

void Statuses(std::string_view input) {
  const auto status = ReadStatus(input);
  if (!status) RequireRefusal(status);
}

void Assignments(std::string_view input) {
  ReadsBack(input, ReadAssign);
  const auto assigned = ReadPages({std::string(input), std::string(input)});
  if (!assigned) return RequireRefusal(assigned);
  for (const auto& [shard, tables] : assigned->slices) {
    for (const TableSlices& table : tables) {
      for (const std::uint32_t slice : table.slices)
        Require(slice < kMaxSlices, "what is scanned is a slice");
    }
  }
}

void Changes(std::string_view input) {
  if (const auto change = ReadChange("0000000007", input))
    (void)NoteChange("engine", *change, {"0000000001"});
}

void Names(std::string_view input) {
  if (const auto slice = ParseSliceName(input))
    Require(ToString(*slice) == input, "a slice's name is one text");
  if (const auto task = ParseTaskName(input, {"main", {"tasks", 0}})) {
    const auto again = ParseTaskName(ToString(*task), {"other", {"other", 0}});
    Require(again && *again == *task, "a task's name reads back as it was");
  }
  Pauses pauses;
  if (pauses.Add(input)) {
    const std::vector<std::string> names = pauses.Names();
    Require(names.size() == 1 && names[0] == input, "a pause is known by its name");
  }
  if (const auto key = ConfigKey::Read(input)) (void)key->Keys(nlohmann::ordered_json::object());
}

void Queries(std::string_view input) {
  if (const auto place = ParsePlace(input)) {
    const auto again = ParsePlace(ToText(*place));
    Require(again && *again == *place, "a place in a query reads back as it was");
  }
  const Status guarded = GuardSql(input);
  if (!guarded) RequireRefusal(guarded);
  const Status query = CheckQuery(input);
  if (!query) return RequireRefusal(query);
  Require(guarded.has_value(), "a query is never freer than a handler's SQL");
  // Whatever is open at its end; a space, since it may end with a backslash.
  const auto passes = [&](const std::string& closes) {
    return CheckQuery(std::string(input) + " " + closes + "\n INTO OUTFILE 'x'").has_value();
  };
  Require(!passes("") || !passes("'") || !passes("\"") || !passes("`") || !passes("*/"),
          "behind a query's end INTO is seen");
}

const std::string kConfigSeed =
    R"({"engine":{"lease":"10s","poll":"200ms","batch":999,"on_zookeeper_loss":"continue"},
 "handlers":{"noop":{"concurrency":8,"timeout":"30s","retry":{"delays":["1m","5m"],"max_failures":4,"jitter":0.1},
 "keep":"7d","group":"default","options":{"a":[1,null,"x"]},"secrets":{"p":{"file":"x"},"q":{"variable":"Q"}}}},
 "shards":{"main":{"url":"mysql://u@h:1/d","password_file":"p","tables":["tasks"],"slices":64}}, // comment
 "schedules":{},"alerts":{}})";
const std::string kPolicySeed =
    R"({"engine":{"aging":"5m","scanners":{"by":"table","most":4},"queues":{"by":"one","take":"random","most":8},
 "brake":{"latency":"50ms"}},"handlers":{"noop":{"limit":{"rate":"100/s","burst":10,"concurrency":1},
 "breaker":{"failures":0.5,"window":"10s","minimum":20,"probe_every":"2s","probes":1,"classes":["timeout","http_5*"]},
 "hours":{"from":"01:00","to":"06:00","zone":"UTC"},"threads":{"min":1,"keep_alive":"5m"},"queue_bytes":65536,
 "when_full":"give_back","weight":7,"retry":{"classes":{"timeout":{"delays":["5s"]},"http_4*":"fail"}},
 "bands":[{"priority":"5-9","failures":"1-5","every":"30s","most":1000},{"priority":"3","most":1}]},
 "b":{"breaker":true,"on_exception":"hold"}}})";
const std::string kSimulateSeed =
    R"({"workers":[{"id":"a","weight":3,"handlers":["x"],"slices":null},{"id":"b","handlers":null,"slices":["s/t/1"]},
 {"id":"c"}],"slices":[{"id":"s/t/1","group":"g"},{"id":"s/t/2","group":"h"},{"id":"s/t/3","group":"x"}],
 "groups":{"g":["x","y"]},"current":{"s/t/1":"a","s/t/2":"gone","s/t/3":null}})";

// Arrays in arrays: what reads them one level a call has no stack left.
std::string Nested(const std::string& before, const std::string& after, std::size_t levels = 30'000) {
  return before + std::string(levels, '[') + std::string(levels, ']') + after;
}

// Events of a server's binary log, each with its length in two bytes before it.
void BinaryLog(std::string_view input) {
  BinlogReader reader("shop", [](const TableName& table) { return table == "tasks"; });
  while (input.size() > 2) {
    const std::size_t size = static_cast<unsigned char>(input[0]) | static_cast<unsigned char>(input[1]) << 8;
    const std::string_view event = input.substr(2, size);
    input.remove_prefix(2 + event.size());
    // In memory of its own, so that a sanitizer sees the first byte that is read beyond.
    const std::vector<unsigned char> bytes(event.begin(), event.end());
    const auto heard = reader.Read(bytes);
    if (!heard.ring) continue;
    Require(!heard.ring->table || *heard.ring->table == "tasks", "only what is watched rings");
    Require(heard.ring->slices.size() <= 64, "a ring names few slices, or all");
  }
}

void Rings(std::string_view input) {
  const auto ring = ReadShardRing(input);
  if (ring) Require(ReadShardRing(ToText(*ring)) == ring, "a ring is read as it is written");
}

std::string FromHex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// TABLE_MAP, WRITE_ROWS and UPDATE_ROWS; a statement, TABLE_MAP and WRITE_ROWS.
std::vector<std::string> LogSeeds() {
  return {FromHex("350000f1536513070000000000000067120000000009000000000001000473686f7000057461736b73000608"
                  "02010f12fc044000060300590000f153651707000000000000006712000000000900000000000100063f0001"
                  "00000000000000030000046e6f6f7000000000000000000200007b7d000100000000000000070000046e6f6f"
                  "7000000000000000000200007b7d5a0000f15365180700000000000000671200000000090000000000010006"
                  "3f3f000100000000000000030000046e6f6f7000000000000000000200007b7d000100000000000000030002"
                  "046e6f6f7000000000000000000200007b7d"),
          FromHex("3b0000f1536502070000000000000067120000000001000000000000000400000500313233343573686f7000"
                  "44454c4554452046524f4d207461736b73350000f15365130700000000000000671200000000090000000000"
                  "01000473686f7000057461736b7300060802010f12fc044000060300590000f1536517070000000000000067"
                  "12000000000900000000000100063f000100000000000000030000046e6f6f7000000000000000000200007b"
                  "7d000100000000000000070000046e6f6f7000000000000000000200007b7d")};
}

std::vector<Target> MakeTargets() {
  const std::vector<std::string> config_words = {
      "\"engine\"", "\"handlers\":", "\"shards\":", "\"retry\":{", "\"delays\":[", "\"5m\"",
      "\"lease\":", "{\"a\":",       "\"30/m\"",    "\"24:00\"",   "\"5-9\"",      "\"classes\":"};
  const std::vector<std::string> document_words = {
      "\"slices\":[", "\"main/tasks/1\"", "\"groups\":{", "\"0-31\"",
      "\"weight\":",  "\"seconds\":",     "{\"a\":",      "\"handlers\":null"};
  return {
      {"configuration",
       Configuration,
       {kConfigSeed, kPolicySeed, "{}", "// only a comment\n{\"engine\":{}}"},
       config_words},
      {"layers",
       Layers,
       {R"({"lease":"10s","batch":9})", R"({"noop":{"concurrency":8,"retry":{"jitter":0.1}}})",
        R"({"main":{"url":"mysql://u@h/d","slices":64}})", "{}", ""},
       config_words,
       {Nested(R"({"noop":{"options":{"a":)", "}}}")}},
      {"csv",
       Csv,
       {"id,name\n1,a\n2,\"b\"\"c\"\n", "\xef\xbb\xbfid;name\r\n1,\"two\nlines\"\r\n",
        "id\n007\n1e3\n\n-1.50\n", "id,id\n1,2\n", "\"id\",x\n\"1\",,\n"},
       {",\"", "\",", "\"\n\"", "\n\n"}},
      {"jsonl",
       Jsonl,
       {R"({"params":{"id":7,"a":[1,2.5,null]},"key":"k","at":"2026-11-20T18:00:00Z","priority":3,"batch":"b"})",
        R"({"id":12345678901234567890,"x":"ä\u0041"})", R"({"params":{},"in":"5m"})", "[1,2]", "7"},
       {"{\"params\":", "\"key\":", "\"at\":", "\"in\":", "\"priority\":", "\"5m\"", "{\"a\":", "1e400"},
       {Nested(R"({"params":)", "}"), Nested("", ""), Nested(R"({"params":)", "}", 90)}},
      {"store_url",
       StoreUrls,
       {"sqlite:points.db", "mysql://u@db:3307/points?tls_ca=/etc/ca.pem", "mysql://a%40b@[::1]:1/d",
        "mysql://u:secret@h/d"},
       {"mysql://", "sqlite:", "?tls_ca=", "%40", "[::1]", "u@"}},
      {"zookeeper_address",
       ZookeeperAddresses,
       {"zk1:2181,10.0.0.2,[::1]:2183/jobs/blue", "zk1", "zk1/"},
       {":2181", "[::", "]", "/jobs"}},
      {"duration",
       Durations,
       {"200ms", "5m", "1h30m", "7d", "2.5s", "0s", "1us"},
       {"d", "h", "ms", "us", "106751991d", ".000001s"}},
      {"time",
       Times,
       {"2026-11-20T18:00:00Z", "2026-11-20T20:00:00.25+02:00", "2024-02-29T23:59:59.999999-12:30"},
       {"T", "Z", "+14:00", "-00:00", "9999-12-31", "0000-01-01", "23:59:60", ".000001"}},
      {"load_balance",
       LoadBalance,
       {"0-31,40", "7", "0-16383", "1,2,3,5-9"},
       {"16383", "16384", "0-", "1-1"}},
      {"simulate",
       Simulate,
       {kSimulateSeed, R"({"workers":[],"slices":[]})"},
       {"{\"id\":", "\"weight\":", "1000000", "\"groups\":{", "\"current\":{", "\"handlers\":", "\"s/t/2\""},
       {Nested(R"({"workers":)", "}")}},
      {"worker",
       Workers,
       {R"({"host":"h","pid":7,"incarnation":"w1.a","weight":3,"handlers":["a","b"],"load_balance":"0-2,40",)"
        R"("shards":["east"],"tables":["tasks"],"doorbell":"h:1","version":"1"})",
        R"({"host":"h"})"},
       document_words,
       {Nested(R"({"host":"h","handlers":)", "}")}},
      {"limits",
       Limits,
       {R"({"handlers":["a"],"load_balance":"0-31"})", R"({"shards":[],"tables":null})", "{}"},
       document_words},
      {"epoch",
       Epochs,
       {R"({"epoch":4,"leader":"w1","incarnation":"w1.a"})", R"({"epoch":0})"},
       document_words},
      {"candidate",
       Candidates,
       {R"({"id":"w1","incarnation":"w1.a"})", R"({"id":"c","unread":["main"]})"},
       document_words},
      {"breaker",
       Breakers,
       {R"({"state":"open","since":"2026-11-20T18:00:00Z","why":"3 of 4 failed","by":"w1",)"
        R"("probe":{"by":"w2","incarnation":"w2.a","at":"2026-11-20T18:00:30Z"}})",
        "", "open"},
       {"\"probe\":", "\"by\":", "\"incarnation\":", "\"at\":", "null"},
       {Nested(R"({"probe":)", "}")}},
      {"made_again",
       Notes,
       {R"({"made_again":[{"nodes":["/assign","/"],"at":"2026-11-20T18:00:00Z","by":"w1"}]})"},
       {"\"made_again\":[", "\"nodes\":", "{}", "\"/\"", "null"},
       {Nested(R"({"made_again":)", "}")}},
      {"expect", Expects, {"", R"({"incarnation":"w1.a","seconds":60})"}, document_words},
      {"assign",
       Assignments,
       {R"({"epoch":3,"generation":9,"slices":["main/tasks/1","main/tasks/1@a"],"groups":{"a":["x"],"default":["*"]}})",
        R"({"epoch":3,"generation":9,"slices":["main/tasks_001/16383"]})"},
       document_words,
       {Nested(R"({"epoch":3,"new":)", "}"), Nested(R"({"slices":)", "}")}},
      {"status",
       Statuses,
       {R"({"incarnation":"w1.a","generation":7,"shards":{"main":{"incarnation":"w1.b"}},)"
        R"("limits":{"mail":{"uses":2.5,"running":3,"wants_rate":true}},"breakers":{"mail":{"open":true}}})"},
       document_words,
       {Nested(R"({"limits":)", "}", 100'000), Nested(R"({"shards":{"main":)", "}}", 100'000),
        Nested(R"({"breakers":)", "}", 100'000)}},
      {"plan",
       Plans,
       {R"({"epoch":3,"slices":64,"moves_waiting":2,"holding":true,"groups":{"mail":["send_mail"]},"unplaceable":1,)"
        R"("unplaceable_slices":["main/tasks/7@mail"],"unrunnable":["main: typo"],"troubles":["x"],)"
        R"("probation":{"w2":"2026-11-20T18:00:15Z"}})"},
       document_words,
       {Nested(R"({"epoch":3,"groups":{"a":)", "}}")}},
      {"change",
       Changes,
       {R"({"at":"2026-11-20T18:00:00Z","by":"u@h","text":"{}"})"},
       {"\"text\":", "\"by\":"},
       {Nested(R"({"text":)", "}")}},
      {"names",
       Names,
       {"main/tasks/17", "main/tasks/17@mail", "17", "cluster", "shard:main", "handler:noop",
        "slice:main:tasks:3", "handlers.send_mail.retry.jitter", "handlers[\"mail.monthly\"].timeout"},
       {"main/", "tasks/", "@default", "slice:", "handler:", "[\"", "\"]", "handlers."}},
      {"binary_log",
       BinaryLog,
       LogSeeds(),
       {std::string(8, '\0'), std::string(4, '\xff'), "\xfe", "shop", "tasks", "\x3f"}},
      {"rings",
       Rings,
       {"millrace-ring 1 main tasks 3,17-19", "millrace-ring 1 main * *"},
       {"millrace-ring 1 ", "*", " "}},
      {"query",
       Queries,
       {"SELECT id, name FROM t WHERE a = 'x''y' -- end", "WITH t AS (SELECT 1) SELECT * FROM t",
        "SELECT \"a\\\"b\", `c``d` /* e */ FROM t # f", "(SELECT 1) UNION (SELECT 2);"},
       {"SELECT ", " INTO ", "/*", "*/", "/*!", "/*M!", "--\n", "#", "`", "1e5", "\\N"}},
  };
}

}  // namespace

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all = MakeTargets();
    for (Target& target : ScheduleTargets()) all.push_back(std::move(target));
    for (Target& target : ShownTargets()) all.push_back(std::move(target));
    return all;
  }();
  return targets;
}

}  // namespace millrace::engine::fuzz
