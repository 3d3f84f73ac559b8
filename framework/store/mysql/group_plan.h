// Keeps the due map a handful of jumps over its index.
#pragma once

#include <map>
#include <string>

#include "framework/base/clock.h"
#include "framework/store/mysql/session.h"

namespace millrace::engine::mysql {

// A server goes by the statistics that it had when it opened a table. One that was opened while it was nearly
// empty, and filled since, is read from end to end for every map (1M rows: 300 ms instead of 3), until it is
// analysed.
class GroupPlan {
 public:
  // `took`: how long the map of this table, and of those asked with it, took beyond what their number
  // explains. A slow one is looked into, once a minute at most.
  void Mend(Session& session, const TableName& table, Micros took);

 private:
  std::map<TableName, BootTime> next_;  // by table
};

}  // namespace millrace::engine::mysql
