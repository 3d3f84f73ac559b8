#include "coordinator/upkeep/batch_decider.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/coordination/json_text.h"
#include "framework/base/escape.h"
#include "framework/base/log.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// The counts stand still, and too few have ended: somebody has announced what was never added, or a row went
// by hand.
constexpr Micros kStandsStillFor = std::chrono::seconds(30);
// A shard that does not answer rests so many times as long as it kept the others' batches waiting.
constexpr int kRestOfAShard = 3;
constexpr Micros kShortestRest = std::chrono::seconds(5);
constexpr Micros kLongestRest = std::chrono::minutes(1);
constexpr std::size_t kBatchesAtOnce = 500;
// A callback that plain SQL has written, or a former version has accepted: what there is stack for.
constexpr std::size_t kDeepestCallback = 1'000;
const std::vector<std::string> kCallbackMembers = {"handler", "params", "priority", "in"};

Failure WrongCallback(const std::string& what) { return Fail(ErrorCode::Invalid, what); }

Status ReadCallbackMember(const std::string& name, const ordered_json& value, NewTask& task) {
  if (name == "handler") {
    if (!value.is_string()) return WrongCallback("'handler' must be a text");
    task.handler = value.get<std::string>();
  } else if (name == "params") {
    if (!value.is_object()) return WrongCallback("'params' must be an object");
    task.params = value.dump();
  } else if (name == "priority") {
    if (!value.is_number_integer() || value < 0 || value > 9)
      return WrongCallback("'priority' must be a number from 0 to 9");
    task.priority = value.get<std::uint32_t>();
  } else if (name == "in") {
    if (!value.is_string()) return WrongCallback("'in' must be a text such as \"5m\"");
    auto delay = ParseDuration(value.get<std::string>());
    if (!delay) return WrongCallback("'in': " + delay.error().message);
    task.delay = *delay;
  } else {
    return WrongCallback("there is no member '" + Escape(Shorten(name, 80)) + "'" +
                         DidYouMean(name, kCallbackMembers));
  }
  return {};
}

// Not of one table, or of a right that lacks: what else stands in the shard can be asked.
bool IsOfTheShard(const Error& error) {
  return error.code != ErrorCode::Internal && error.code != ErrorCode::NotFound && !IsForPeople(error.code);
}

bool HasCallback(const BatchRecord& record) { return !record.on_success.empty() || !record.on_end.empty(); }

Result<std::vector<NewTask>> CallbackTasks(const std::string& text, const std::string& key) {
  std::vector<NewTask> tasks;
  if (text.empty()) return tasks;
  BOOST_OUTCOME_TRY(task, ParseCallback(text, key));
  tasks.push_back(std::move(task));
  return tasks;
}

// Of each batch the row to come back to: one that runs tells more than one that waits.
std::map<std::string, const BatchRow*> RowsToComeBackTo(const BatchPage& page) {
  std::map<std::string, const BatchRow*> rows;
  for (const BatchRow& row : page.rows) {
    const BatchRow*& chosen = rows[row.batch];
    if (chosen == nullptr || (row.state == TaskState::Running && chosen->state != TaskState::Running))
      chosen = &row;
  }
  return rows;
}

}  // namespace

Result<NewTask> ParseCallback(const std::string& text, const std::string& key) {
  if (IsDeeperThan(kDeepestCallback, text)) return WrongCallback("it is nested more than 1000 levels deep");
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (!json.is_object())
    return WrongCallback("it must be a JSON object such as {\"handler\":\"send_mail\",\"params\":{}}");
  NewTask task;
  for (const auto& [name, value] : json.items()) {
    BOOST_OUTCOME_TRYV(ReadCallbackMember(name, value, task));
  }
  if (task.handler.empty()) return WrongCallback("it lacks the member 'handler'");
  task.biz_key = key;
  BOOST_OUTCOME_TRYV(Validate(task));
  return task;
}

BatchLook BatchDecider::Look(const StoresByShard& shards, bool at_once) {
  Follow(shards);
  if (at_once) {
    for (auto& [shard, open] : open_) open.again = {};
  }
  BatchLook look = LookOnce(at_once);
  look.unread = std::any_of(open_.begin(), open_.end(),
                            [](const auto& open) { return open.second.again != BootTime(); });
  return look;
}

BatchLook BatchDecider::LookOnce(bool at_once) {
  BatchLook look;
  std::vector<Candidate> candidates = Closed(at_once);
  look.closed = candidates.size();
  (void)ReadSums(candidates);
  std::erase_if(candidates, [&](Candidate& candidate) {
    return !IsTime(candidate, at_once) || !ReadCallbacks(candidate);
  });
  std::map<BatchPart, std::vector<Candidate*>> walks;
  for (Candidate& candidate : candidates) {
    candidate.open = WitnessStands(candidate);
    if (candidate.open) continue;
    for (const BatchPart& part : candidate.record.parts) walks[part].push_back(&candidate);
  }
  for (auto& [part, looked_for] : walks) {
    if (Walk(part, looked_for)) continue;
    look.cut = true;
    return look;
  }
  for (Candidate& candidate : candidates) {
    if (candidate.open || candidate.early) {
      look.pending += HasCallback(candidate.record) && MayEndSoon(candidate) ? 1 : 0;
      continue;
    }
    std::vector<Candidate> again{candidate};
    const bool same = ReadSums(again) && again.front().sums == candidate.sums;
    const Result<bool> decided = same ? Decide(candidate) : Result<bool>(false);
    look.cut = look.cut || !same || !decided;
    if (decided && *decided) ++look.ended;
  }
  return look;
}

// What waits for its time, or is held, may take for ever.
bool BatchDecider::MayEndSoon(const Candidate& candidate) {
  if (!candidate.open) return true;
  const std::optional<Witness>& witness = known_[candidate.name].witness;
  return witness && witness->row.state == TaskState::Running;
}

void BatchDecider::Follow(const StoresByShard& shards) {
  std::erase_if(open_, [&](const auto& open) {
    const auto found = shards.find(open.first);
    return found == shards.end() || found->second != open.second.store;
  });
  for (const auto& [shard, store] : shards) {
    if (!open_.contains(shard)) open_[shard] = {store, store->OpenBatches(), {}};
  }
}

// Null: it is not one of ours, or is away.
BatchStore* BatchDecider::At(const std::string& shard) {
  const auto open = open_.find(shard);
  const BootTime now = parts_.now();
  if (open == open_.end() || open->second.again > now) return nullptr;
  open->second.asked = now;
  open->second.again = {};
  return open->second.batches.get();
}

void BatchDecider::NoteError(const std::string& shard, const Error& error) {
  if (!IsOfTheShard(error)) return;
  OpenShard& open = open_[shard];
  const BootTime now = parts_.now();
  open.again = now + std::clamp(Micros(now - open.asked) * kRestOfAShard, kShortestRest, kLongestRest);
}

// Once for each thing that is wrong.
void BatchDecider::TellUnread(const std::string& home, const std::string& why) {
  std::string& told = open_[home].told;
  if (told == why) return;
  told = why;
  if (why.empty()) return;
  LogWarning("the batches of a shard can't be read, so none that is at home there ends; it is tried again",
             {{"shard", home}, {"why", why}});
}

std::vector<BatchDecider::Candidate> BatchDecider::Closed(bool at_once) {
  std::vector<Candidate> candidates;
  std::set<Name> there;
  for (auto& [home, open] : open_) {
    const BootTime begun = parts_.now();
    if (!at_once && open.none_at && open.store->Heard().UnchangedSince(*open.none_at, begun)) continue;
    const std::size_t before = candidates.size();
    open.none_at.reset();
    std::string after;
    for (bool more = true; more;) {
      BatchStore* batches = At(home);
      if (batches == nullptr) break;
      auto page = batches->List(BatchStore::Which::Closed, after, kBatchesAtOnce);
      if (!page) {
        NoteError(home, page.error());
        if (!IsOfTheShard(page.error())) TellUnread(home, page.error().message);
        break;
      }
      TellUnread(home, "");
      more = page->size() == kBatchesAtOnce;
      for (BatchRecord& record : *page) {
        after = record.name;
        there.insert({home, record.name});
        candidates.push_back({{home, record.name}, std::move(record), {}});
      }
      if (!more && candidates.size() == before) open.none_at = begun;
    }
  }
  std::erase_if(known_, [&](const auto& known) { return !there.contains(known.first); });
  return candidates;
}

// Leaves out those of which a shard is not there, and is false where there is such a one.
bool BatchDecider::ReadSums(std::vector<Candidate>& candidates) {
  std::map<std::vector<BatchPart>, std::vector<Candidate*>> groups;
  for (Candidate& candidate : candidates) {
    candidate.sums = {};
    groups[candidate.record.parts].push_back(&candidate);
  }
  std::set<Name> left_out;
  for (const auto& [parts, group] : groups) {
    std::vector<std::string> names;
    for (const Candidate* candidate : group) names.push_back(candidate->name.second);
    std::string missing;
    for (const auto& [shard, tables] : TablesByShard(parts)) {
      for (std::size_t at = 0; at < names.size() && missing.empty(); at += kBatchesAtOnce) {
        const auto some = std::span(names).subspan(at, std::min(kBatchesAtOnce, names.size() - at));
        BatchStore* batches = At(shard);
        const auto sums =
            batches == nullptr
                ? Result<std::map<std::string, BatchSums>>(Fail(ErrorCode::Unavailable, "it is not there"))
                : batches->Sums(tables, some);
        if (!sums && batches != nullptr) NoteError(shard, sums.error());
        if (!sums) missing = shard;
        if (!sums) break;
        for (Candidate* candidate : group) {
          const auto found = sums->find(candidate->name.second);
          if (found != sums->end()) candidate->sums += found->second;
        }
      }
    }
    for (const Candidate* candidate : group) {
      if (missing.empty()) continue;
      Tell(candidate->name, "its shard " + missing + " is not there");
      left_out.insert(candidate->name);
    }
  }
  std::erase_if(candidates, [&](const Candidate& candidate) { return left_out.contains(candidate.name); });
  return left_out.empty();
}

// False: the pools need not be looked into.
bool BatchDecider::IsTime(Candidate& candidate, bool at_once) {
  if (candidate.record.parts.empty()) {
    Tell(candidate.name, "its row names no table");
    return false;
  }
  const BootTime now = parts_.now();
  Known& known = known_[candidate.name];
  if (!known.sums || *known.sums != candidate.sums) {
    known.sums = candidate.sums;
    known.moved = now;
  }
  const bool all = candidate.sums.Ended() >= candidate.record.added;
  candidate.early = !all && now - known.moved < kStandsStillFor;
  const bool looked = !all && now - known.looked < kStandsStillFor;
  if ((candidate.early || looked || now < known.again) && !at_once) return false;
  known.looked = now;
  return true;
}

// False: one can't be read, so there is nothing to look for.
bool BatchDecider::ReadCallbacks(Candidate& candidate) {
  const BatchRecord& record = candidate.record;
  auto success = CallbackTasks(record.on_success, SuccessKey(record.name));
  auto end = CallbackTasks(record.on_end, EndKey(record.name));
  if (!success || !end) {
    Tell(candidate.name, "a callback can't be read: " + (success ? end : success).error().message);
    return false;
  }
  candidate.success = std::move(*success);
  candidate.end = std::move(*end);
  return true;
}

// An answer that does not come is no proof of its end.
bool BatchDecider::WitnessStands(Candidate& candidate) {
  Known& known = known_[candidate.name];
  if (!known.witness) return false;
  const BatchPart& part = known.witness->part;
  BatchStore* batches = At(part.shard);
  if (batches == nullptr) return true;
  const std::uint64_t id = known.witness->row.id;
  auto still = batches->Still(part.table, candidate.name.second, std::span(&id, 1));
  if (!still) NoteError(part.shard, still.error());
  if (!still) return true;
  if (still->empty()) {
    known.witness.reset();
  } else {
    known.witness->row = still->front();
  }
  return known.witness.has_value();
}

// False: it was asked to stop.
bool BatchDecider::Walk(const BatchPart& part, std::vector<Candidate*>& candidates) {
  std::uint64_t after = 0;
  while (true) {
    std::erase_if(candidates, [](const Candidate* candidate) { return candidate->open; });
    if (candidates.empty()) return true;
    if (parts_.stop()) return false;
    const BootTime begun = parts_.now();
    BatchStore* batches = At(part.shard);
    const auto page = batches == nullptr ? Result<BatchPage>(Fail(ErrorCode::Unavailable, "it is not there"))
                                         : batches->Walk(part.table, after, kMaxBatchRows);
    if (!page) {
      if (batches != nullptr) NoteError(part.shard, page.error());
      for (Candidate* candidate : candidates) {
        candidate->open = true;  // for all that is known
        Tell(candidate->name, "its part " + ToString(part) + " can't be read: " + page.error().message);
      }
      return true;
    }
    const auto rows = RowsToComeBackTo(*page);
    for (Candidate* candidate : candidates) {
      const auto row = rows.find(candidate->name.second);
      if (row == rows.end()) continue;
      candidate->open = true;
      known_[candidate->name].witness = Witness{part, *row->second};
    }
    if (!page->next) return true;
    after = *page->next;
    parts_.rest(parts_.now() - begun);
  }
}

// True: it has ended by this. An error: it is tried again at once.
Result<bool> BatchDecider::Decide(const Candidate& candidate) {
  const auto& [home, name] = candidate.name;
  BatchStore* batches = At(home);
  if (batches == nullptr) return false;
  const auto ended =
      batches->End({name, candidate.record.table, candidate.sums, candidate.success, candidate.end});
  if (!ended) Tell(candidate.name, ended.error().message);
  const bool again =
      !ended && (ended.error().code == ErrorCode::Conflict || ended.error().code == ErrorCode::Unknown);
  if (again) return ended;
  if (!ended) NoteError(home, ended.error());
  if (!ended && !IsOfTheShard(ended.error())) known_[candidate.name].again = parts_.now() + kStandsStillFor;
  if (!ended || !*ended) return false;
  LogInfo("a batch has ended", {{"shard", home},
                                {"batch", name},
                                {"outcome", candidate.sums.AllSucceeded() ? "succeeded" : "failed"},
                                {"succeeded", candidate.sums.succeeded},
                                {"cancelled", candidate.sums.cancelled},
                                {"failed", candidate.sums.failed}});
  return true;
}

// Once for each thing that holds it up.
void BatchDecider::Tell(const Name& name, const std::string& what) {
  Known& known = known_[name];
  if (known.told == what) return;
  known.told = what;
  LogWarning("the end of a closed batch can't be decided now; it is tried again",
             {{"shard", name.first}, {"batch", name.second}, {"why", what}});
}

}  // namespace millrace::engine
