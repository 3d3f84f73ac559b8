#include "coordinator/member/assignment.h"

#include <algorithm>
#include <tuple>

#include "coordinator/planner/handler_groups.h"

namespace millrace::engine {
namespace {

// A group of every other type is scanned for all: what belongs to a group of its own is then looked at by two
// workers, and claimed by one.
std::optional<std::vector<std::string>> TypesOf(std::vector<std::string> handlers) {
  if (std::find(handlers.begin(), handlers.end(), kEveryOther) != handlers.end()) return std::nullopt;
  std::sort(handlers.begin(), handlers.end());
  return handlers;
}

// Collects what the pages of an assignment name. Each page has groups of its own: while groups are named anew
// some pages may say so later than others, or have names of before and after, and an empty one never does.
class Reading {
 public:
  Status Add(const AssignDocument& page) {
    for (const std::string& text : page.slices) {
      BOOST_OUTCOME_TRY(name, ParseSliceName(text));
      const auto group = page.groups.find(name.group);
      const bool every_type = page.groups.empty() && name.group == kDefaultGroup;
      if (!every_type && group == page.groups.end()) {
        return Fail(ErrorCode::Invalid, "the group of " + Shorten(text, 200) + " is not among its groups");
      }
      const auto types = every_type ? std::nullopt : TypesOf(group->second);
      numbers_[{name.shard, name.table, name.group, types}].push_back(name.number);
    }
    return {};
  }

  SlicesByShard Take() {
    SlicesByShard slices;
    for (auto& [key, list] : numbers_) {
      const auto& [shard, table, group, types] = key;
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      TableSlices owned{table, false, std::move(list)};
      owned.handlers = types;
      slices[shard].push_back(std::move(owned));
    }
    return slices;
  }

 private:
  using Types = std::optional<std::vector<std::string>>;
  using Key = std::tuple<std::string, TableName, std::string, Types>;  // shard, table, group
  std::map<Key, std::vector<std::uint32_t>> numbers_;
};

// False: nothing of the table is left.
bool Narrow(TableSlices& table, const std::string& shard, const WorkerLimits& limits) {
  if (ObstacleOfTable(limits, shard, table.table) != Obstacle::None) return false;
  table.handlers = Both(table.handlers, limits.handlers);
  if (limits.load_balance) {
    table.slices = *Both(table.all ? std::nullopt : Limit<std::uint32_t>(table.slices), limits.load_balance);
    table.all = false;
  }
  return (table.all || !table.slices.empty()) && (!table.handlers || !table.handlers->empty());
}

}  // namespace

Result<Assignment> ReadPages(const std::vector<std::string>& pages) {
  Assignment all;
  Reading reading;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    BOOST_OUTCOME_TRY(page, ReadAssign(pages[i]));
    BOOST_OUTCOME_TRYV(reading.Add(page));
    all.epoch = std::max(all.epoch, page.epoch);
    all.generation = std::max(all.generation, page.generation);
    all.slice_count += page.slices.size();
    if (i > 0) continue;  // nobody reads shares of another page
    all.shares_generation = page.generation;
    all.shares = std::move(page.shares);
    all.shares_of = std::move(page.shares_of);
  }
  all.slices = reading.Take();
  return all;
}

std::shared_ptr<const SlicesByShard> WithinLimits(const std::shared_ptr<const SlicesByShard>& assigned,
                                                  const WorkerLimits& limits) {
  if (!limits.Any()) return assigned;
  auto limited = std::make_shared<SlicesByShard>(*assigned);
  for (auto& [shard, tables] : *limited) {
    std::erase_if(tables, [&, &of = shard](TableSlices& table) { return !Narrow(table, of, limits); });
  }
  return limited;
}

}  // namespace millrace::engine
