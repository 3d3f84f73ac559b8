#include "coordinator/alerts/alert_shard.h"

#include <algorithm>
#include <utility>

#include "coordinator/alerts/notice.h"
#include "framework/mill/hours_policy.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenTables = std::chrono::seconds(30);
constexpr std::size_t kEventsKept = kMostEventsCounted + 1;
constexpr Micros kLatestCommit = std::chrono::minutes(1);  // behind a greater number
constexpr Micros kLaterNote = std::chrono::minutes(1);     // of a worker's loss, in another of its shards
constexpr Micros kKept = std::chrono::days(30);            // a message that was sent, and its key
constexpr std::size_t kKeysRead = 64;        // more than two messages of an alert with all its addressees
constexpr std::size_t kRowsLooked = 50'000;  // of one type, for one that waits; a scan counts for some
constexpr std::size_t kScanCosts = 50;

template <class Value>
void Raise(std::map<std::string, Value>& values, const std::string& type, Value value) {
  Value& known = values.try_emplace(type, value).first->second;
  known = std::max(known, value);
}

// What counts together: an alert about crashes may be about one type.
std::string CountedAs(const ShardEvent& event) {
  return event.kind == kHandlerCrashed ? event.kind + " " + event.type : event.kind;
}

std::optional<WallTime> OpenedWithin(const AlertNeeds& needs, const std::string& type, WallTime now) {
  if (needs.config == nullptr) return std::nullopt;
  const auto& hours = needs.config->HandlerFor(type).hours;
  return hours ? OpenSince(*hours, now) : std::nullopt;
}

}  // namespace

AlertNeeds NeedsOf(const std::map<std::string, AlertConfig>& alerts) {
  AlertNeeds needs;
  for (const auto& [name, alert] : alerts) {
    switch (alert.kind) {
      case AlertKind::OldestDue:
        needs.late = std::min(needs.late.value_or(alert.longer_than), alert.longer_than);
        break;
      case AlertKind::Failed:
      case AlertKind::Unrunnable:
      case AlertKind::Unowned:
      case AlertKind::Breaker:
        break;
      case AlertKind::Refused:
      case AlertKind::Crashes:
      case AlertKind::WorkerLost:
      case AlertKind::Schedule:
        needs.events = std::max(needs.events.value_or(Micros(0)), LookBack(alert) + kLaterNote);
        needs.schedules = needs.schedules || alert.kind == AlertKind::Schedule;
        break;
    }
  }
  return needs;
}

std::vector<std::string> TroublesOf(const Unsent& unsent, const std::string& shard) {
  const auto why = [&](const char* state) {
    return " in the shard " + shard + ": millrace task list --state " + state + " --handler " + kMailType +
           ", or " + kWebhookType + ", says why";
  };
  std::vector<std::string> troubles;
  if (unsent.tries_again)
    troubles.push_back("messages of alerts could not be sent so far and are tried again," + why("waiting"));
  if (unsent.failed > 0) {
    troubles.push_back(std::to_string(unsent.failed) + (unsent.failed == 1 ? " message" : " messages") +
                       " of alerts could not be sent," + why("failed"));
  }
  return troubles;
}

AlertShard::AlertShard(std::string name, std::shared_ptr<Store> store)
    : name_(std::move(name)),
      store_(std::move(store)),
      alerts_(store_->OpenAlerts()),
      tasks_(store_->OpenTasks()),
      operations_(store_->OpenOperations()),
      overview_(store_->OpenOverview()),
      schema_(store_->OpenSchema()),
      schedules_(store_->OpenSchedules()) {}

Status AlertShard::ReadTables(BootTime now) {
  if (tables_ && now - tables_read_ < kBetweenTables) return {};
  BOOST_OUTCOME_TRY(tables, schema_->Tables());
  tables_ = std::move(tables);
  tables_read_ = now;
  return {};
}

Status AlertShard::Observe(const AlertNeeds& needs, const AlertPlace& place, BootTime now,
                           Observation& seen) {
  BOOST_OUTCOME_TRYV(ReadTables(now));
  BOOST_OUTCOME_TRY(failed, alerts_->Failed());
  unsent_.failed = 0;
  if (!seen.failed) seen.failed.emplace();
  for (const auto& [type, count] : failed) {
    if (IsBuiltIn(type)) {
      unsent_.failed += count;
    } else {
      (*seen.failed)[type] += count;
    }
  }
  BOOST_OUTCOME_TRYV(LookAtDue(needs, place, seen));
  if (needs.events) {
    BOOST_OUTCOME_TRYV(LookAtEvents(*needs.events, now, seen));
  }
  if (needs.schedules) {
    BOOST_OUTCOME_TRYV(LookAtSchedules(needs, seen));
  }
  return {};
}

Status AlertShard::LookAtDue(const AlertNeeds& needs, const AlertPlace& place, Observation& seen) {
  std::vector<TableName> wanted;  // empty: all
  if (needs.config != nullptr && needs.config->shards.contains(name_))
    wanted = needs.config->shards.at(name_).tables;
  std::vector<TableSlices> all;
  for (const TableInfo& info : *tables_) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), info.table) != wanted.end())
      all.push_back({info.table});
  }
  BOOST_OUTCOME_TRY(map, tasks_->Due(all, DueWanted{}));
  unread_ = map.refused;
  seen.whole_due = seen.whole_due && unread_.empty();
  if (!seen.late) seen.late.emplace();
  if (place.runs && !seen.unrunnable) seen.unrunnable.emplace();
  BOOST_OUTCOME_TRYV(LookAtBreakers(map, seen));
  std::map<std::string, std::vector<DueGroup>> late;
  unsent_.tries_again = false;
  if (needs.late) NoteHeld(needs, place, map);
  for (DueGroup& group : map.groups) {
    if (IsBuiltIn(group.handler)) {
      unsent_.tries_again = unsent_.tries_again || FailuresOf(group.urgency) > 0;  // the place on the ladder
      continue;
    }
    const Micros ago = map.now - group.first_run_at;
    if (ago < Micros(0)) continue;
    if (place.runs && !place.runs(group.handler)) Raise(*seen.unrunnable, group.handler, ago);
    const auto held = held_.find(KeyOf(group));
    if (held != held_.end() && held->second == map.now) continue;
    if (needs.late && ago > *needs.late) late[group.handler].push_back(std::move(group));
  }
  for (auto& [type, groups] : late) {
    BOOST_OUTCOME_TRYV(LookForWaiting(type, std::move(groups), map.now, seen));
  }
  return {};
}

// Without a cluster each worker tells of its own beside the shard's pauses.
Status AlertShard::LookAtBreakers(const DueMap& map, Observation& seen) {
  const auto told = [](const std::string& name) { return ReadTripped(name).has_value(); };
  if (!seen.breakers || std::none_of(map.pauses.begin(), map.pauses.end(), told)) return {};
  BOOST_OUTCOME_TRY(rows, operations_->Pauses());
  for (const PauseRecord& row : rows) {
    const auto tripped = ReadTripped(row.what);
    if (tripped) seen.breakers->try_emplace(tripped->type, row.reason.empty() ? row.actor : row.reason);
  }
  return {};
}

void AlertShard::NoteHeld(const AlertNeeds& needs, const AlertPlace& place, const DueMap& map) {
  Pauses pauses = place.pauses ? *place.pauses : Pauses();
  for (const std::string& name : map.pauses) {
    if (!pauses.Add(name)) continue;  // a name that a later version knows
  }
  std::map<GroupKey, WallTime> held;
  for (const DueGroup& group : map.groups) {
    const GroupKey key = KeyOf(group);
    const auto before = held_.find(key);
    if (needs.config != nullptr && HeldOnPurpose(*needs.config, pauses, name_, group, map.now)) {
      held[key] = map.now;
    } else if (before != held_.end()) {
      held[key] = before->second;
    } else if (const auto opened = OpenedWithin(needs, group.handler, map.now)) {
      held[key] = *opened;  // whoever looks for the first time has not seen it wait
    }
  }
  for (const auto& [key, until] : held_) {
    if (map.refused.contains(std::get<TableName>(key))) held.emplace(key, until);
  }
  held_ = std::move(held);
}

// A running row still stands in the due order: the first row of a group that waits is looked for, in the
// groups that could have an older one than was found.
Status AlertShard::LookForWaiting(const std::string& type, std::vector<DueGroup> groups, WallTime now,
                                  Observation& seen) {
  std::sort(groups.begin(), groups.end(),
            [](const DueGroup& a, const DueGroup& b) { return a.first_run_at < b.first_run_at; });
  std::optional<WallTime> oldest;
  std::size_t left = kRowsLooked;
  for (const DueGroup& group : groups) {
    if (oldest && group.first_run_at >= *oldest) break;
    BOOST_OUTCOME_TRY(first, FirstWaiting(group, left));
    if (first) {
      const auto held = held_.find(KeyOf(group));
      const WallTime since = held == held_.end() ? *first : std::max(*first, held->second);
      oldest = std::min(oldest.value_or(since), since);
    }
    if (left > 0) continue;
    seen.late_unsure.insert(type);
    break;
  }
  if (oldest) Raise(*seen.late, type, Micros(now - *oldest));
  return {};
}

Result<std::optional<WallTime>> AlertShard::FirstWaiting(const DueGroup& group, std::size_t& left) {
  ScanPosition after = HeadOf(group);
  while (left > 0) {
    BOOST_OUTCOME_TRY(rows, tasks_->Scan({group, after, kMaxBatchRows}));
    left -= std::min(left, std::max(rows.size(), kScanCosts));
    const auto waiting = std::find_if(rows.begin(), rows.end(),
                                      [](const ScanRow& row) { return row.state == TaskState::Waiting; });
    if (waiting != rows.end()) return std::optional(waiting->run_at);
    if (rows.size() < kMaxBatchRows) break;
    after = {rows.back().run_at, rows.back().id};
  }
  return std::optional<WallTime>();
}

// Without a cluster nobody removes the row of a schedule that the configuration has no more.
Status AlertShard::LookAtSchedules(const AlertNeeds& needs, Observation& seen) {
  if (!seen.late_schedules) seen.late_schedules.emplace();
  const auto read = schedules_->Rows();
  if (!read && read.error().code == ErrorCode::NotFound) return {};  // a schema from before there were any
  if (!read) return Fail(read.error());
  for (const ScheduleRow& row : read->rows) {
    const auto late = LateBy(row.state, read->now);
    const bool known = needs.config == nullptr || needs.config->schedules.contains(row.name);
    if (late && known && row.moved_to.empty()) seen.late_schedules->emplace(name_ + "/" + row.name, *late);
  }
  return {};
}

Status AlertShard::LookAtEvents(Micros window, BootTime now, Observation& seen) {
  BOOST_OUTCOME_TRY(found, alerts_->Events(floor_));
  if (found.greatest < floor_) {  // the table was emptied, and its numbers begin anew
    floor_ = 0;
    known_.clear();
    marks_.clear();
    BOOST_OUTCOME_TRY(anew, alerts_->Events(0));
    found = std::move(anew);
  }
  marks_.emplace_back(now, found.greatest);
  for (ShardEvent& event : found.events) {
    if (!known_.insert(event.id).second) continue;
    const BootTime at = now - event.ago;
    const auto later = std::upper_bound(events_.begin(), events_.end(), at,
                                        [](BootTime time, const Kept& kept) { return time < kept.at; });
    events_.insert(later, {std::move(event), at});
  }
  while (!marks_.empty() && now - marks_.front().first >= kLatestCommit) {
    floor_ = std::max(floor_, marks_.front().second);
    marks_.pop_front();
  }
  known_.erase(known_.begin(), known_.upper_bound(floor_));
  DropEvents(window, now);
  if (!seen.events) seen.events.emplace();
  for (const Kept& kept : events_) {
    const bool worker = kept.event.kind == kWorkerLost;
    seen.events->push_back({kept.event.kind, worker ? kept.event.subject : name_ + "/" + kept.event.subject,
                            now - kept.at, kept.event.type, name_});
  }
  return {};
}

// From the newest to the oldest, so that however many there are of a kind, they push out none of another.
void AlertShard::DropEvents(Micros window, BootTime now) {
  while (!events_.empty() && now - events_.front().at > window) events_.pop_front();
  std::map<std::string, std::size_t> kept;
  const auto beyond = [&kept](const Kept& one) { return ++kept[CountedAs(one.event)] > kEventsKept; };
  const auto first = std::remove_if(events_.rbegin(), events_.rend(), beyond);
  events_.erase(events_.begin(), first.base());
}

Result<std::vector<KeyedTask>> AlertShard::Messages(const std::string& alert) {
  std::vector<KeyedTask> all;
  for (const char* type : {kMailType, kWebhookType}) {
    BOOST_OUTCOME_TRY(keyed, alerts_->Keyed(type, KeysOf(alert), kKeysRead));
    all.insert(all.end(), keyed.begin(), keyed.end());
  }
  std::sort(all.begin(), all.end(), [](const KeyedTask& a, const KeyedTask& b) { return a.key > b.key; });
  return all;
}

Result<SaidAlert> AlertShard::Said(const std::string& alert, BootTime now) {
  BOOST_OUTCOME_TRY(keyed, Messages(alert));
  SaidAlert said;
  std::uint64_t looked = 0;
  for (const KeyedTask& one : keyed) {
    const auto number = NumberOfKey(alert, one.key);
    if (!number || *number == looked) continue;
    looked = *number;
    const auto record = operations_->Get(one.task);
    if (!record && record.error().code != ErrorCode::NotFound) return Fail(record.error());
    // A task that was removed before its key has taken its words along.
    const NoticeParams words =
        (record ? ParseNoticeParams(record->task.params) : std::nullopt).value_or(NoticeParams{});
    if (said.number == 0) {
      said.number = *number;
      // One that could not be sent outlasts the word of its end.
      const bool outlasts = record && record->task.state == TaskState::Failed && one.ago > kKept;
      said.firing = words.firing && !outlasts;
    }
    if (!words.firing) continue;
    said.fired_at = now - one.ago;
    said.count = words.count;
    said.names = words.names;
    said.since = words.since;
    said.kind = words.kind;
    said.handler = words.handler;
    break;
  }
  return said;
}

std::vector<std::string> AlertShard::FailedExamples(const std::string& type, std::size_t most) {
  std::vector<std::string> examples;
  if (!tables_) return examples;
  const auto totals = operations_->TypeTotals();
  if (!totals) return examples;
  const auto failed = overview_->Failed(NamesOf(*tables_), *totals);
  if (!failed) return examples;
  for (const FailedClass& one : failed->classes) {
    if (IsBuiltIn(one.handler) || (type != "*" && type != one.handler)) continue;
    if (examples.size() == most) break;
    const std::string error_class = one.error_class.empty() ? "" : " [" + one.error_class + "]";
    const std::string others = one.count > 1 ? " and " + std::to_string(one.count - 1) + " like it" : "";
    examples.push_back(ToString(TaskName{name_, {one.table, one.newest}}) + ", " + one.handler + error_class +
                       others + ": " + one.error);
  }
  return examples;
}

Result<bool> AlertShard::Add(std::vector<NewTask> tasks, const AlertPlace& place) {
  if (tasks.empty()) return true;
  if (!tables_) return Fail(ErrorCode::Unavailable, "the shard " + name_ + " has not answered yet");
  std::vector<TableInfo> readable = *tables_;
  std::erase_if(readable, [this](const TableInfo& info) { return unread_.contains(info.table); });
  std::optional<TableName> table;
  for (NewTask& task : tasks) {
    const auto spot = place.spot(name_, task.handler, readable);
    if (!spot || (table && spot->table != *table)) {
      return Fail(ErrorCode::NotFound, "no worker takes tasks of the type " + task.handler +
                                           " in the shard " + name_ +
                                           "; one that is limited by --handlers must name it");
    }
    table = spot->table;
    task.slice = spot->slice;
  }
  BOOST_OUTCOME_TRY(report, operations_->Submit(*table, tasks));
  return report.added == tasks.size();
}

void AlertShard::Withdraw(const std::string& alert, std::uint64_t before, bool running) {
  const auto keyed = Messages(alert);
  if (!keyed) return;  // then they are sent late
  std::map<TableName, std::vector<std::uint64_t>> old;
  for (const KeyedTask& one : *keyed) {
    const auto number = NumberOfKey(alert, one.key);
    if (number && *number < before) old[one.task.table].push_back(one.task.id);
  }
  for (const auto& [table, ids] : old) {
    const auto outcomes = operations_->Outcomes(table, ids);
    if (!outcomes) continue;
    std::vector<std::uint64_t> unsent;
    for (const TaskOutcome& one : *outcomes) {
      const bool runs = running && one.state == TaskState::Running;
      if (one.state == TaskState::Waiting || runs) unsent.push_back(one.id);
    }
    if (!unsent.empty()) (void)operations_->Apply(TaskAction::Cancel, table, unsent, "alerts");
  }
}

SaidAlert LastSaid(const StoresByShard& shards, const std::string& alert, BootTime now) {
  SaidAlert last;
  for (const auto& [name, store] : shards) {
    const auto said = AlertShard(name, store).Said(alert, now);
    if (said && said->number > last.number) last = *said;
  }
  return last;
}

}  // namespace millrace::engine
