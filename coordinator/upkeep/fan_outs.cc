#include "coordinator/upkeep/fan_outs.h"

#include <algorithm>

#include "framework/base/escape.h"
#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/base/utf8.h"
#include "framework/schedule/key_template.h"
#include "framework/store/query_check.h"
#include "framework/store/row_params.h"

namespace millrace::engine {
namespace {

constexpr Micros kRestAfterFailure = std::chrono::minutes(1);
constexpr Micros kSilenceWithinPage = std::chrono::minutes(1);
constexpr std::size_t kRowsWithoutKeyLookedAt = 10;
constexpr Micros kStandsStill = std::chrono::seconds(30);
constexpr Micros kAskAwayAgain = std::chrono::seconds(5);

// The rows of a page as tasks. Two rows that differ in a column of the key may still come to one key, where
// what the key has between its columns occurs in them: eu + west-1 and eu-west + 1 of {region}-{code}. The
// second would go for one that is there already.
class PageReader {
 public:
  PageReader(const FanOut& fan_out, KeyTemplate key, TimeZone zone, const std::vector<std::string>& columns)
      : fan_out_(fan_out), key_(std::move(key)), zone_(std::move(zone)) {
    for (const std::string& name : columns) columns_.push_back({name, NameToJson(name)});
  }

  Result<NewTask> TaskOf(const SqlCells& cells) {
    NewTask task;
    task.handler = fan_out_.handler;
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& name = columns_[i].name;
      const auto& named = key_.columns();
      if (cells[i] && std::find(named.begin(), named.end(), name) != named.end()) row[name] = *cells[i];
    }
    BOOST_OUTCOME_TRY(key, key_.KeyOf(row, fan_out_.firing, zone_));
    BOOST_OUTCOME_TRY(params, RowToJson(columns_, cells));
    task.biz_key = std::move(key);
    task.params = std::move(params);
    BOOST_OUTCOME_TRYV(Validate(task));
    if (rows_.try_emplace(task.biz_key, row).first->second != row) {
      return Fail(ErrorCode::Invalid, "its key '" + Escape(Excerpt(task.biz_key)) +
                                          "' is another row's, which has other values: write between the "
                                          "columns of the key what occurs in none of them, such as a '/'");
    }
    return task;
  }

 private:
  const FanOut& fan_out_;
  const KeyTemplate key_;
  const TimeZone zone_;
  std::vector<JsonColumn> columns_;
  std::map<std::string, std::map<std::string, std::string>> rows_;  // by key, what they have of its columns
};

}  // namespace

std::size_t FanOutWatch::Moving(const StoresByShard& shards) {
  const BootTime now = now_();
  std::size_t moving = 0;
  std::map<std::string, std::map<Name, Seen>> seen;
  for (const auto& [shard, store] : shards) {
    OpenShard& open = open_[shard];
    if (open.store != store) open = {store, store->OpenFanOuts()};
    if (open.fan_outs == nullptr || open.again > now) continue;
    const auto all = open.fan_outs->UnderWay();
    if (!all) open.again = now + kAskAwayAgain;
    if (!all) continue;
    for (const FanOut& one : *all) {
      Seen is{one.submitted + one.refused, one.place, now};
      const auto& before = seen_[shard];
      const auto was = before.find({one.schedule, one.firing});
      const bool same = was != before.end() && was->second.rows == is.rows && was->second.place == is.place;
      if (same) is.since = was->second.since;
      moving += now - is.since < kStandsStill ? 1 : 0;
      seen[shard][{one.schedule, one.firing}] = std::move(is);
    }
  }
  seen_ = std::move(seen);
  return moving;
}

FanOuts::FanOuts(std::string shard, Store& store, std::unique_ptr<FanOutStore> fan_outs, Random random,
                 std::size_t rows_of_page)
    : shard_(std::move(shard)),
      store_(store),
      fan_outs_(std::move(fan_outs)),
      rows_of_page_(rows_of_page),
      random_(std::move(random)) {}

bool FanOuts::Go(const std::vector<TableInfo>& tables, const std::function<bool()>& stop) {
  if (fan_outs_ == nullptr) return false;
  while (!stop()) {
    const BootTime asked = BootClock::now();
    none_at_.reset();
    const auto all = fan_outs_->UnderWay();
    if (!all) return false;  // the shard's own trouble is told elsewhere
    under_way_ = all->size();
    if (all->empty()) none_at_ = asked;
    const auto is_over = [&](const auto& known) {
      return std::none_of(all->begin(), all->end(),
                          [&](const FanOut& one) { return Name(one.schedule, one.firing) == known.first; });
    };
    std::erase_if(resting_, is_over);
    std::erase_if(taken_, is_over);
    const FanOut* next = Next(*all);
    if (next == nullptr) return false;
    const Status stepped = Step(*next, tables);
    if (stepped) {
      resting_.erase({next->schedule, next->firing});
    } else {
      Note(*next, stepped.error());
    }
  }
  return true;
}

const FanOut* FanOuts::Next(const std::vector<FanOut>& all) const {
  const BootTime now = BootClock::now();
  for (const FanOut& one : all) {
    const auto resting = resting_.find({one.schedule, one.firing});
    if (resting == resting_.end() || resting->second.until <= now) return &one;
  }
  return nullptr;
}

Status FanOuts::Step(const FanOut& fan_out, const std::vector<TableInfo>& tables) {
  const auto table = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableInfo& known) { return known.table == fan_out.table; });
  if (table == tables.end())
    return Fail(ErrorCode::Invalid, "the shard has no table " + std::string(fan_out.table.text()));
  BOOST_OUTCOME_TRYV(CheckFills(fan_out.query, fan_out.table));
  BOOST_OUTCOME_TRY(page, ReadPage(fan_out, table->slices));
  std::uint64_t& taken = taken_[{fan_out.schedule, fan_out.firing}];
  page.taken = taken;
  BOOST_OUTCOME_TRY(step, fan_outs_->Step(fan_out, page));
  if (step.overtaken) return {};
  taken += page.tasks.size() - step.added;
  if (page.last) {
    LogInfo("a fan-out has come to its end", {{"shard", shard_},
                                              {"schedule", fan_out.schedule},
                                              {"firing", FormatTime(fan_out.firing)},
                                              {"submitted", fan_out.submitted + step.added},
                                              {"refused", fan_out.refused + page.refused},
                                              {"taken_already", taken}});
  }
  return {};
}

Result<FanOutPage> FanOuts::ReadPage(const FanOut& fan_out, std::uint32_t slices) {
  BOOST_OUTCOME_TRY(key, KeyTemplate::Parse(fan_out.key));
  BOOST_OUTCOME_TRY(zone, TimeZone::Find(fan_out.zone));
  std::optional<QueryPlace> place;
  if (fan_out.place) {
    BOOST_OUTCOME_TRY(parsed, ParsePlace(*fan_out.place));
    if (parsed.values.size() != key.columns().size())
      return Fail(ErrorCode::Invalid, "its place has other columns than its key");
    place = std::move(parsed);
  }
  QueryPages pages(store_.OpenTransaction(kSilenceWithinPage), fan_out.query, key.columns(), rows_of_page_,
                   std::move(place));
  if (!fan_out.place) TellWithoutKey(fan_out, pages);
  BOOST_OUTCOME_TRY(rows, pages.Next());
  FanOutPage page{.place = fan_out.place, .last = pages.ended()};
  if (pages.place()) page.place = ToText(*pages.place());
  PageReader reader(fan_out, std::move(key), std::move(zone), rows.columns);
  SliceRuns& runs =
      slices_.try_emplace({fan_out.table, slices}, slices, std::uint64_t{0}, Random(random_.Next()))
          .first->second;
  for (const SqlCells& cells : rows.rows) {
    auto task = reader.TaskOf(cells);
    if (task) {
      task->slice = runs.Next();
      page.tasks.push_back(std::move(*task));
    } else if (page.refused++ == 0) {
      LogWarning("a row of a fan-out is no task, and is left out",
                 {{"shard", shard_}, {"schedule", fan_out.schedule}, {"why", task.error().message}});
    }
  }
  return page;
}

// No page reads them.
void FanOuts::TellWithoutKey(const FanOut& fan_out, QueryPages& pages) {
  const auto without = pages.WithoutKey(kRowsWithoutKeyLookedAt);
  if (!without || without->empty()) return;
  LogWarning("a fan-out leaves rows out whose key is NULL",
             {{"shard", shard_},
              {"schedule", fan_out.schedule},
              {"rows", without->size()},
              {"more", without->size() == kRowsWithoutKeyLookedAt}});
}

// A lock that somebody held says nothing of the fan-out; and what came of a COMMIT, the row says.
void FanOuts::Note(const FanOut& fan_out, const Error& error) {
  const bool patient = error.code == ErrorCode::Conflict || error.code == ErrorCode::Unknown;
  Rest& rest = resting_[{fan_out.schedule, fan_out.firing}];
  rest.until = BootClock::now() + (patient ? Micros(std::chrono::seconds(1)) : kRestAfterFailure);
  if (patient) return;
  const std::string why = "schedules." + fan_out.schedule + ".from_query: the fan-out of " +
                          FormatTime(fan_out.firing) +
                          " stands still, and is tried again each minute as it was begun (to give it up: "
                          "millrace schedule stop " +
                          fan_out.schedule + "): " + error.message;
  if (why == rest.why) return;
  rest.why = why;
  LogWarning("a fan-out stands still", {{"shard", shard_}, {"why", why}});
}

std::vector<std::string> FanOuts::Troubles() const {
  std::vector<std::string> troubles;
  for (const auto& [name, rest] : resting_) {
    if (!rest.why.empty()) troubles.push_back(rest.why);
  }
  return troubles;
}

}  // namespace millrace::engine
