#include "coordinator/app/schedule/schedule_book.h"

#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/plugins_at_hand.h"

namespace millrace::engine {

ShardScheduleFacts ReadShardSchedules(Shard& shard, const Status& ready, const Config& config) {
  ShardScheduleFacts told;
  if (!ready) {
    told.away = ready.error();
    return told;
  }
  for (const TableInfo& info : shard.tables) told.tables.emplace(info.table);
  const auto store = shard.store->OpenSchedules();
  auto rows = store->Rows();
  if (!rows) {
    told.away = rows.error();
    return told;
  }
  told.now = rows->now;
  told.rows = std::move(rows->rows);
  const auto store_of_fan_outs = shard.store->OpenFanOuts();
  auto fan_outs = store_of_fan_outs->UnderWay();
  if (!fan_outs) {
    told.away = fan_outs.error();
    return told;
  }
  told.fan_outs = std::move(*fan_outs);
  const bool any = std::any_of(config.schedules.begin(), config.schedules.end(),
                               [](const auto& one) { return !one.second.from_query.empty(); });
  if (!any) return told;
  if (auto ended = store_of_fan_outs->Ended()) told.ended = std::move(*ended);
  return told;
}

Result<ScheduleBook> ScheduleBook::Open(const CommonFlags& flags) {
  ScheduleBook book;
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags, Variable, kDefaultStore));
  book.config_ = std::make_shared<const Config>(settings.config);
  if (settings.cluster) {
    BOOST_OUTCOME_TRY(cluster, Connect(flags));
    book.cluster_ = std::move(cluster);
    BOOST_OUTCOME_TRY(layers, ReadLayers(*book.cluster_.client, book.cluster_.settings));
    book.config_ = layers.Effective();
    if (const auto refused = layers.Refusals().find("schedules"); refused != layers.Refusals().end())
      book.refusal_ = refused->second;
    BOOST_OUTCOME_TRY(types, TypesOfWorkers(*book.cluster_.client));
    book.handlers_ = std::move(types);
  } else {
    book.cluster_.settings = std::move(settings);
  }
  if (!book.handlers_) book.handlers_ = HandlerNamesAtHand(flags);
  auto shards = book.cluster_.client ? OpenShards(book.cluster_) : OpenShards(book.cluster_.settings);
  if (!shards) return Fail(shards.error());
  book.shards_ = std::move(*shards);
  return book;
}

Status ScheduleBook::CheckThere(const std::string& name) const {
  if (config_->schedules.contains(name)) return {};
  std::vector<std::string> names;
  for (const auto& [known, schedule] : config_->schedules) names.push_back(known);
  return Fail(ErrorCode::NotFound,
              "there is no schedule '" + name + "'" +
                  (names.empty() ? "; none is configured" : NearestOf(name, names, "; there are ", 20)));
}

Result<std::pair<Shard*, TableName>> ScheduleBook::PlaceOf(const ScheduleConfig& schedule) {
  const bool first_shard = schedule.shard.empty() && !shards_.empty();
  BOOST_OUTCOME_TRY(shard, PickShard(shards_, first_shard ? shards_.begin()->first : schedule.shard));
  BOOST_OUTCOME_TRYV(Prepare(*shard, Missing::Refuse));
  if (schedule.table) {
    BOOST_OUTCOME_TRY(table, PickTable(*shard, *schedule.table));
    return std::pair(shard, table);
  }
  const auto first =
      std::min_element(shard->tables.begin(), shard->tables.end(),
                       [](const TableInfo& a, const TableInfo& b) { return a.table < b.table; });
  if (first == shard->tables.end())
    return Fail(ErrorCode::Invalid, "shard " + shard->name + " has no task table");
  return std::pair(shard, first->table);
}

std::vector<ScheduleFacts> ScheduleBook::Read() {
  std::map<std::string, ShardScheduleFacts> told;
  const auto unready = PrepareEach(shards_, Missing::Refuse);
  for (auto& [name, shard] : shards_) {
    const auto why = unready.find(name);
    told[name] =
        ReadShardSchedules(shard, why == unready.end() ? Status() : Status(Fail(why->second)), *config_);
    if (told[name].away) away_.emplace(name, *told[name].away);
  }
  return FactsOf(*config_, told, handlers_, SystemClock().WallNow());
}

Result<std::uint64_t> ScheduleBook::StopFanOuts(const std::string& name) {
  std::uint64_t stopped = 0;
  const auto unready = PrepareEach(shards_, Missing::Refuse);
  for (auto& [shard_name, shard] : shards_) {
    if (const auto why = unready.find(shard_name); why != unready.end()) {
      away_.emplace(*why);
      continue;
    }
    BOOST_OUTCOME_TRY(here, shard.store->OpenFanOuts()->Stop(name, Actor()));
    stopped += here;
  }
  return stopped;
}

Result<ScheduleFacts> ScheduleBook::ReadOne(const std::string& name) {
  BOOST_OUTCOME_TRYV(CheckThere(name));
  for (ScheduleFacts& schedule : Read()) {
    if (schedule.name == name) return std::move(schedule);
  }
  return Fail(ErrorCode::Internal, "the schedule '" + name + "' is gone");
}

}  // namespace millrace::engine
