#include "coordinator/coordination/documents.h"

#include <algorithm>

#include "coordinator/coordination/json_text.h"
#include "framework/config/config.h"
#include "framework/policy/load_balance.h"
#include "framework/task/task.h"

namespace millrace::engine {

// As members of a document.
template <class Json>
static void to_json(Json& out, const LimitShare& share) {
  out = Json::object();
  if (share.rate > 0) out[share_key::kRate] = share.rate;
  if (share.saved > 0) out[share_key::kSaved] = share.saved;
  if (share.concurrency > 0) out[share_key::kConcurrency] = share.concurrency;
  if (share.permits > 0) out[share_key::kPermits] = share.permits;
}
template <class Json>
static void from_json(const Json& in, LimitShare& share) {
  share.rate = std::max(in.value(share_key::kRate, 0.0), 0.0);
  share.saved = std::max(in.value(share_key::kSaved, 0.0), 0.0);
  share.concurrency = in.value(share_key::kConcurrency, 0u);
  share.permits = in.value(share_key::kPermits, 0u);
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// How it is written that there is no value; both read alike.
enum class Absent { Null, LeftOut };

// Reads the members of one object; the first that has another type than it must have is remembered. Writer
// has the same members, so that a document's keys stand in one list for both.
class Reader {
 public:
  explicit Reader(std::string_view text) : value_(ParseNode<json>(text)) {
    if (!value_.is_object())
      wrong_ = IsTooDeep(text) ? "nested more than 32 levels deep" : "this is not a JSON object";
  }
  template <class T>
  void Value(const char* key, T& into) {
    if (!wrong_.empty()) return;
    const auto found = value_.find(key);
    if (found == value_.end() || found->is_null()) return;
    try {
      into = found->get<T>();
    } catch (const json::exception&) {
      wrong_ = std::string("'") + key + "' has a wrong type";
    }
  }
  template <class T>
  void IfAny(const char* key, T& into) {
    Value(key, into);
  }
  // Refuses a number that is out of its range.
  void Number(const char* key, std::uint32_t& into, std::uint32_t least, std::uint32_t most) {
    Value(key, into);
    if (into < least || into > most) {
      Refuse(std::string("'") + key + "' must be " + std::to_string(least) + " … " + std::to_string(most));
    }
  }
  // Takes the nearest for one that is over it or negative.
  void AtMost(const char* key, std::uint32_t& into, std::int64_t most) {
    std::int64_t number = into;
    Value(key, number);
    into = static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, most));
  }
  void Names(const char* key, Limit<std::string>& into, Absent) {
    Optional(key, into);
    if (into) std::sort(into->begin(), into->end());
  }
  void LoadBalance(const char* key, Limit<std::uint32_t>& into) {
    std::optional<std::string> text;
    Optional(key, text);
    if (!text) return;
    if (text->empty()) {  // as it is written where limits leave no number
      into.emplace();
      return;
    }
    auto numbers = ParseLoadBalance(*text);
    if (!numbers) return Refuse(std::string("'") + key + "': " + numbers.error().message);
    into = std::move(*numbers);
  }
  bool good() const { return wrong_.empty(); }
  Failure Wrong() const { return Fail(ErrorCode::Invalid, wrong_); }

 private:
  template <class T>
  void Optional(const char* key, std::optional<T>& into) {
    if (!wrong_.empty() || !value_.contains(key) || value_[key].is_null()) return;
    T value;
    Value(key, value);
    if (wrong_.empty()) into = std::move(value);
  }
  void Refuse(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  json value_;
  std::string wrong_;
};

class Writer {
 public:
  template <class T>
  void Value(const char* key, const T& value) {
    json_[key] = value;
  }
  template <class T>
  void IfAny(const char* key, const T& value) {
    if (!value.empty()) json_[key] = value;
  }
  void Number(const char* key, std::uint32_t value, std::uint32_t, std::uint32_t) { json_[key] = value; }
  void AtMost(const char* key, std::uint32_t value, std::int64_t) { json_[key] = value; }
  void Names(const char* key, const Limit<std::string>& names, Absent absent) {
    if (names) {
      json_[key] = *names;
    } else if (absent == Absent::Null) {
      json_[key] = nullptr;
    }
  }
  void LoadBalance(const char* key, const Limit<std::uint32_t>& numbers) {
    json_[key] = numbers ? ordered_json(FormatLoadBalance(*numbers)) : ordered_json(nullptr);
  }
  std::string Text() const { return JsonText(json_); }

 private:
  ordered_json json_ = ordered_json::object();
};

// The keys of each document, in the order in which they are written.

template <class Keys, class Limits>
void LimitsKeys(Keys& keys, Limits& limits, Absent places) {
  keys.Names("handlers", limits.handlers, Absent::Null);
  keys.LoadBalance("load_balance", limits.load_balance);
  keys.Names("shards", limits.shards, places);
  keys.Names("tables", limits.tables, places);
}

constexpr auto kLimits = [](auto& keys, auto& limits) {
  LimitsKeys(keys, limits, Absent::Null);
  keys.IfAny("max_rows", limits.max_rows);
};

constexpr auto kWorker = [](auto& keys, auto& worker) {
  keys.Value("host", worker.host);
  keys.Value("pid", worker.pid);
  keys.Value("incarnation", worker.incarnation);
  keys.Number("weight", worker.weight, 1, 1000);
  LimitsKeys(keys, worker.limits, Absent::LeftOut);
  keys.IfAny("databases", worker.databases);
  keys.Value("doorbell", worker.doorbell);
  keys.Value("version", worker.version);
  keys.IfAny("start_limits", worker.start_limits);
};

constexpr auto kEpoch = [](auto& keys, auto& epoch) {
  keys.Value("epoch", epoch.epoch);
  keys.Value("leader", epoch.leader);
  keys.Value("incarnation", epoch.incarnation);
};

constexpr auto kCandidate = [](auto& keys, auto& candidate) {
  keys.Value("id", candidate.id);
  keys.Value("incarnation", candidate.incarnation);
  keys.Names("unread", candidate.unread, Absent::Null);
};

constexpr auto kExpect = [](auto& keys, auto& expect) {
  keys.Value("incarnation", expect.incarnation);
  keys.AtMost("seconds", expect.seconds, kLongestExpectation.count());
};

constexpr auto kAssign = [](auto& keys, auto& assign) {
  keys.Value("epoch", assign.epoch);
  keys.Value("generation", assign.generation);
  keys.Value("slices", assign.slices);
  keys.IfAny("groups", assign.groups);
  keys.Value("shares", assign.shares);
  keys.IfAny("shares_of", assign.shares_of);
  keys.IfAny("shares_before", assign.shares_before);
};

constexpr auto kPlan = [](auto& keys, auto& plan) {
  keys.Value("epoch", plan.epoch);
  keys.Value("slices", plan.slices);
  keys.Value("moves_waiting", plan.moves_waiting);
  keys.Value("holding", plan.holding);
  keys.Value("groups", plan.groups);
  keys.Value("unplaceable", plan.unplaceable);
  keys.Value("unplaceable_slices", plan.unplaceable_slices);
  keys.Value("unrunnable", plan.unrunnable);
  keys.Value("troubles", plan.troubles);
  keys.Value("on_probation", plan.on_probation);
  keys.Value("probation", plan.probation);
};

template <class Document, class List>
Result<Document> Read(std::string_view text, List list) {
  Document document;
  Reader keys(text);
  list(keys, document);
  if (!keys.good()) return keys.Wrong();
  return document;
}

template <class Document, class List>
std::string Written(const Document& document, List list) {
  Writer keys;
  list(keys, document);
  return keys.Text();
}

// Of a part of a document; none where it has no such part.
const json& MembersOf(const json& document, const char* part) {
  static const json none = json::object();
  const auto found = document.find(part);
  return found == document.end() ? none : *found;
}

constexpr std::size_t kWorkersTold = 3;  // of the workers with one database

std::string WorkerNames(const std::vector<std::string>& ids) {
  std::string names;
  for (std::size_t i = 0; i < ids.size() && i < kWorkersTold; ++i) names += (i == 0 ? "" : ", ") + ids[i];
  if (ids.size() > kWorkersTold) names += " and " + std::to_string(ids.size() - kWorkersTold) + " more";
  return names;
}

}  // namespace

std::vector<std::string> DatabaseTroubles(const std::map<std::string, WorkerDocument>& workers) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> shards;  // by identity: the ids
  for (const auto& [id, document] : workers) {
    for (const auto& [shard, identity] : document.databases) shards[shard][identity].push_back(id);
  }
  std::vector<std::string> lines;
  for (const auto& [shard, databases] : shards) {
    if (databases.size() < 2) continue;
    std::string line = "workers mean different databases by the shard " + shard + ":";
    for (const auto& [identity, ids] : databases) {
      line += (identity == databases.begin()->first ? " " : "; ") + WorkerNames(ids) +
              " one whose schema was made at " + identity;
    }
    lines.push_back(line + ": start them all with the same --store, or name the shard in config/shards");
  }
  return lines;
}

std::vector<std::string> Brief(const std::vector<std::string>& lines, std::size_t most) {
  constexpr std::size_t kLongestLine = 1000;
  std::vector<std::string> brief;
  for (const std::string& line : lines) {
    if (brief.size() == most) {
      brief.push_back("and " + std::to_string(lines.size() - most) + " more");
      break;
    }
    brief.push_back(Shorten(line, kLongestLine));
  }
  return brief;
}

std::vector<std::string> PagesOf(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || name.front() == '0' || name.find_first_not_of("0123456789") != std::string::npos;
  });
  return names;
}

std::string ToText(const LimitsDocument& limits) { return Written(limits, kLimits); }
std::string ToText(const WorkerDocument& document) { return Written(document, kWorker); }
std::string ToText(const EpochDocument& document) { return Written(document, kEpoch); }
std::string ToText(const CandidateDocument& document) { return Written(document, kCandidate); }
std::string ToText(const ExpectDocument& document) { return Written(document, kExpect); }
std::string ToText(const AssignDocument& document) { return Written(document, kAssign); }
std::string ToText(const PlanDocument& document) { return Written(document, kPlan); }

Result<LimitsDocument> ReadLimits(std::string_view text) {
  BOOST_OUTCOME_TRY(limits, Read<LimitsDocument>(text, kLimits));
  for (const auto& [type, rows] : limits.max_rows) {
    if (rows >= 1 && rows <= kMostScanRows) continue;
    return Fail(ErrorCode::Invalid,
                "'max_rows' of '" + Shorten(type, 64) + "' must be 1 … " + std::to_string(kMostScanRows));
  }
  return limits;
}
Result<WorkerDocument> ReadWorker(std::string_view text) { return Read<WorkerDocument>(text, kWorker); }
Result<EpochDocument> ReadEpoch(std::string_view text) { return Read<EpochDocument>(text, kEpoch); }
Result<CandidateDocument> ReadCandidate(std::string_view text) {
  return Read<CandidateDocument>(text, kCandidate);
}
Result<ExpectDocument> ReadExpect(std::string_view text) {
  if (text.empty()) return ExpectDocument{};  // `create /…/expect/w1` by hand, without data
  return Read<ExpectDocument>(text, kExpect);
}
Result<AssignDocument> ReadAssign(std::string_view text) { return Read<AssignDocument>(text, kAssign); }
Result<PlanDocument> ReadPlan(std::string_view text) { return Read<PlanDocument>(text, kPlan); }

Result<StatusDocument> ReadStatus(std::string_view text) {
  const json value = ParseNode<json>(text);
  StatusDocument status;
  try {
    status.incarnation = value.value(status_key::kIncarnation, "");
    status.generation = value.value(status_key::kGeneration, std::uint64_t{0});
    status.shares_generation = value.value(status_key::kSharesGeneration, status.generation);
    for (const auto& [shard, told] : MembersOf(value, status_key::kShards).items()) {
      if (told.contains(status_key::kIncarnation))
        status.lives.push_back(told.at(status_key::kIncarnation).get<std::string>());
    }
    for (const auto& [type, told] : MembersOf(value, status_key::kLimits).items()) {
      status.limits[type] = {.rate = std::max(told.value(status_key::kUses, 0.0), 0.0),
                             .saved = std::max(told.value(status_key::kSaved, 0.0), 0.0),
                             .running = told.value(status_key::kRunning, 0u),
                             .placed = told.value(status_key::kPlaced, told.value(status_key::kRunning, 0u)),
                             .waiting = told.value(status_key::kWaiting, std::size_t{0}),
                             .wants_rate = told.value(status_key::kWantsRate, false),
                             .wants_concurrency = told.value(status_key::kWantsConcurrency, false)};
    }
    for (const auto& [type, told] : MembersOf(value, status_key::kBreakers).items())
      status.breakers.insert(type);
  } catch (const json::exception&) {
    return Fail(ErrorCode::Invalid, "this is not the status of a worker");
  }
  return status;
}

}  // namespace millrace::engine
