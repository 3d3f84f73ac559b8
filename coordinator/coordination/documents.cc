#include "coordinator/coordination/documents.h"

#include <algorithm>

#include "coordinator/coordination/json_text.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Reads the members of one object; the first that has another type than it must have is remembered.
class Reader {
 public:
  explicit Reader(std::string_view text) : value_(json::parse(text.begin(), text.end(), nullptr, false)) {
    if (!value_.is_object()) wrong_ = "this is not a JSON object";
  }
  template <class T>
  void Read(const char* key, T& into) {
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
  void ReadOptional(const char* key, std::optional<T>& into) {
    if (!wrong_.empty() || !value_.contains(key) || value_[key].is_null()) return;
    T value;
    Read(key, value);
    into = std::move(value);
  }
  void Refuse(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  bool good() const { return wrong_.empty(); }
  tl::unexpected<Error> Wrong() const { return Fail(ErrorCode::Invalid, wrong_); }

 private:
  json value_;
  std::string wrong_;
};

template <class T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

template <class T>
void SortNames(std::optional<std::vector<T>>& names) {
  if (names) std::sort(names->begin(), names->end());
}

Status ReadNumbers(Reader& reader, Limit<std::uint32_t>& into) {
  std::optional<std::string> text;
  reader.ReadOptional("load_balance", text);
  if (!reader.good() || !text) return {};
  if (text->empty()) {  // as it is written where limits leave no number
    into.emplace();
    return {};
  }
  auto numbers = ParseLoadBalance(*text);
  if (!numbers) return Fail(ErrorCode::Invalid, "'load_balance': " + numbers.error().message);
  into = std::move(*numbers);
  return {};
}

ordered_json Numbers(const Limit<std::uint32_t>& numbers) {
  return numbers ? ordered_json(FormatLoadBalance(*numbers)) : ordered_json(nullptr);
}

Status ReadLimitsOf(Reader& reader, WorkerLimits& limits) {
  reader.ReadOptional("handlers", limits.handlers);
  reader.ReadOptional("shards", limits.shards);
  reader.ReadOptional("tables", limits.tables);
  SortNames(limits.handlers);
  SortNames(limits.shards);
  SortNames(limits.tables);
  return ReadNumbers(reader, limits.load_balance);
}

}  // namespace

std::string ToText(const WorkerLimits& limits) {
  return JsonText({{"handlers", OrNull(limits.handlers)},
                   {"load_balance", Numbers(limits.load_balance)},
                   {"shards", OrNull(limits.shards)},
                   {"tables", OrNull(limits.tables)}});
}

Result<WorkerLimits> ReadLimits(std::string_view text) {
  WorkerLimits limits;
  Reader reader(text);
  if (Status read = ReadLimitsOf(reader, limits); !read) return Fail(read.error());
  if (!reader.good()) return reader.Wrong();
  return limits;
}

std::string ToText(const WorkerDocument& document) {
  ordered_json json{{"host", document.host},
                    {"pid", document.pid},
                    {"incarnation", document.incarnation},
                    {"weight", document.weight},
                    {"handlers", OrNull(document.limits.handlers)}};
  json["load_balance"] = Numbers(document.limits.load_balance);
  if (document.limits.shards) json["shards"] = *document.limits.shards;
  if (document.limits.tables) json["tables"] = *document.limits.tables;
  json["doorbell"] = document.doorbell;
  json["version"] = document.version;
  return JsonText(json);
}

Result<WorkerDocument> ReadWorker(std::string_view text) {
  WorkerDocument document;
  Reader reader(text);
  reader.Read("host", document.host);
  reader.Read("pid", document.pid);
  reader.Read("incarnation", document.incarnation);
  reader.Read("weight", document.weight);
  reader.Read("doorbell", document.doorbell);
  reader.Read("version", document.version);
  if (document.weight < 1 || document.weight > 1000) reader.Refuse("'weight' must be 1 … 1000");
  if (Status limits = ReadLimitsOf(reader, document.limits); !limits) return Fail(limits.error());
  if (!reader.good()) return reader.Wrong();
  return document;
}

std::vector<std::string> PagesOf(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || name.front() == '0' || name.find_first_not_of("0123456789") != std::string::npos;
  });
  return names;
}

std::string ToText(const EpochDocument& document) {
  return JsonText(
      {{"epoch", document.epoch}, {"leader", document.leader}, {"incarnation", document.incarnation}});
}

Result<EpochDocument> ReadEpoch(std::string_view text) {
  EpochDocument document;
  Reader reader(text);
  reader.Read("epoch", document.epoch);
  reader.Read("leader", document.leader);
  reader.Read("incarnation", document.incarnation);
  if (!reader.good()) return reader.Wrong();
  return document;
}

std::string ToText(const CandidateDocument& document) {
  ordered_json json;
  json["id"] = document.id;
  json["incarnation"] = document.incarnation;
  json["unread"] = OrNull(document.unread);
  return JsonText(json);
}

std::string ToText(const ExpectDocument& document) {
  return JsonText({{"incarnation", document.incarnation}, {"seconds", document.seconds}});
}

Result<CandidateDocument> ReadCandidate(std::string_view text) {
  Reader reader(text);
  CandidateDocument document;
  reader.Read("id", document.id);
  reader.Read("incarnation", document.incarnation);
  reader.ReadOptional("unread", document.unread);
  if (!reader.good()) return reader.Wrong();
  SortNames(document.unread);
  return document;
}

Result<ExpectDocument> ReadExpect(std::string_view text) {
  ExpectDocument document;
  if (text.empty()) return document;  // `create /…/expect/w1` by hand, without data
  Reader reader(text);
  reader.Read("incarnation", document.incarnation);
  std::int64_t seconds = document.seconds;
  reader.Read("seconds", seconds);
  if (!reader.good()) return reader.Wrong();
  document.seconds =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, kLongestExpectation.count()));
  return document;
}

std::string ToText(const AssignDocument& document) {
  ordered_json json{
      {"epoch", document.epoch}, {"generation", document.generation}, {"slices", document.slices}};
  if (!document.groups.empty()) json["groups"] = document.groups;
  json["shares"] = ordered_json::object();
  return JsonText(json);
}

Result<AssignDocument> ReadAssign(std::string_view text) {
  AssignDocument document;
  Reader reader(text);
  reader.Read("epoch", document.epoch);
  reader.Read("generation", document.generation);
  reader.Read("slices", document.slices);
  reader.Read("groups", document.groups);
  if (!reader.good()) return reader.Wrong();
  return document;
}

std::string ToText(const PlanDocument& document) {
  return JsonText({{"epoch", document.epoch},
                   {"slices", document.slices},
                   {"moves_waiting", document.moves_waiting},
                   {"holding", document.holding},
                   {"groups", document.groups},
                   {"unplaceable", document.unplaceable},
                   {"unplaceable_slices", document.unplaceable_slices},
                   {"unrunnable", document.unrunnable},
                   {"troubles", document.troubles},
                   {"on_probation", document.on_probation},
                   {"probation", document.probation}});
}

Result<PlanDocument> ReadPlan(std::string_view text) {
  PlanDocument document;
  Reader reader(text);
  reader.Read("epoch", document.epoch);
  reader.Read("slices", document.slices);
  reader.Read("moves_waiting", document.moves_waiting);
  reader.Read("holding", document.holding);
  reader.Read("groups", document.groups);
  reader.Read("unplaceable", document.unplaceable);
  reader.Read("unplaceable_slices", document.unplaceable_slices);
  reader.Read("unrunnable", document.unrunnable);
  reader.Read("troubles", document.troubles);
  reader.Read("on_probation", document.on_probation);
  reader.Read("probation", document.probation);
  if (!reader.good()) return reader.Wrong();
  return document;
}

}  // namespace millrace::engine
