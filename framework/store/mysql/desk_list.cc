#include <charconv>

#include "framework/store/mysql/mysql_desk.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_rows.h"

namespace millrace::engine::mysql {
namespace {

// A page's end: the pool's number in the order of the list, and the last id seen there.
struct Place {
  std::size_t pool = 0;
  std::uint64_t id = 0;
};

Result<Place> ParsePlace(const std::string& text) {
  Place place;
  if (text.empty()) return place;
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, place.pool);
  if (error == std::errc() && colon != end && *colon == ':') {
    const auto [stop, wrong] = std::from_chars(colon + 1, end, place.id);
    if (wrong == std::errc() && stop == end && place.pool < 3) return place;
  }
  return Fail(ErrorCode::Invalid,
              "'" + Shorten(text, 80) + "' is not the end of a page; give back what `next` said");
}

bool MayHold(std::size_t pool, const TaskFilter& filter) {
  if (!filter.error_class.empty() && pool != 1) return false;
  if (!filter.state) return true;
  const TaskState state = *filter.state;
  if (state == TaskState::Failed) return pool == 1;
  if (state == TaskState::Succeeded || state == TaskState::Cancelled) return pool == 2;
  return pool == 0;
}

std::string Conditions(const TaskFilter& filter) {
  std::string text;
  if (filter.state) text += " AND state=" + std::to_string(static_cast<int>(*filter.state));
  if (!filter.handler.empty()) text += " AND handler=" + Quote(filter.handler);
  if (!filter.batch.empty()) text += " AND batch=" + Quote(filter.batch);
  if (!filter.key.empty()) text += " AND biz_key=" + Quote(filter.key);
  if (!filter.error_class.empty()) text += " AND error_class=" + Quote(filter.error_class);
  if (filter.slice) text += " AND slice=" + std::to_string(*filter.slice);
  return text;
}

// A page looks at so many rows of a pool, whether they match or not: a filter that matches little makes short
// pages, never slow ones.
constexpr std::size_t kLook = 10'000;

// The last row of a look that begins behind `from`; 0 where the pool ends before.
Result<std::uint64_t> EndOfLook(Session& session, const std::string& pool, std::uint64_t from) {
  std::uint64_t end = 0;
  BOOST_OUTCOME_TRYV(session.Query("SELECT id FROM " + pool + " FORCE INDEX (PRIMARY) WHERE id>" +
                                       std::to_string(from) + " ORDER BY id LIMIT 1 OFFSET " +
                                       std::to_string(kLook - 1),
                                   [&](const Row& row) { end = row.Number(1); }));
  return end;
}

}  // namespace

Result<TaskPage> MysqlTaskDesk::List(const TableName& table, const TaskFilter& filter,
                                     const std::string& after, std::size_t limit) {
  BOOST_OUTCOME_TRY(place, ParsePlace(after));
  TaskPage page;
  const auto next = [](std::size_t pool, std::uint64_t id) {
    return std::to_string(pool) + ":" + std::to_string(id);
  };
  const Pool pools[] = {kHot, kFailed, kDone};
  const std::string conditions = Conditions(filter);
  for (std::size_t pool = place.pool; pool < 3; ++pool) {
    if (!MayHold(pool, filter)) continue;
    const std::uint64_t from = pool == place.pool ? place.id : 0;
    std::uint64_t end = 0;
    if (!conditions.empty()) {
      BOOST_OUTCOME_TRY(look, EndOfLook(session_, table + pools[pool].suffix, from));
      end = look;
    }
    BOOST_OUTCOME_TRYV(
        session_.Query(PoolText(table, pools[pool]) + " FORCE INDEX (PRIMARY) WHERE id>" +
                           std::to_string(from) + (end > 0 ? " AND id<=" + std::to_string(end) : "") +
                           conditions + " ORDER BY id LIMIT " + std::to_string(limit - page.records.size()),
                       [&](const Row& row) { page.records.push_back(ReadRecord(table, row)); }));
    if (page.records.size() >= limit) {
      if (limit > 0) page.next = next(pool, page.records.back().task.key.id);
      return page;
    }
    if (end > 0) {
      page.next = next(pool, end);
      return page;
    }
  }
  return page;
}

}  // namespace millrace::engine::mysql
