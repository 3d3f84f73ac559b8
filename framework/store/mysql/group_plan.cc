#include "framework/store/mysql/group_plan.h"

#include "framework/base/log.h"
#include "framework/store/mysql/due_text.h"

namespace millrace::engine::mysql {
namespace {

constexpr Micros kSlow = std::chrono::milliseconds(50);
constexpr Micros kBetween = std::chrono::minutes(1);

}  // namespace

void GroupPlan::Mend(Session& session, const TableName& table, Micros took) {
  const BootTime now = BootClock::now();
  if (took < kSlow) return;
  BootTime& next = next_[table];
  if (now < next) return;
  next = now + kBetween;
  bool jumps = false;
  Status explained = session.Query(kExplainInRows + DueText({.table = table}), [&](const Row& row) {
    // "Using index for group-by", "Using index for skip scan for grouping"
    jumps = jumps || row.Named("Extra").find("group") != std::string::npos;
  });
  if (!explained || jumps) return;
  // It samples a few pages. Where the user may not, the map stays as slow as it was.
  Status analysed = session.Query("ANALYZE NO_WRITE_TO_BINLOG TABLE " + table, [](const Row&) {});
  LogInfo("the due map was slow by outdated statistics: the table was analysed",
          {{"table", table}, {"ok", analysed.has_value() ? "yes" : "no"}});
}

}  // namespace millrace::engine::mysql
