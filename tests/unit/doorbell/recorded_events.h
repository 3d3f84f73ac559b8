// Events of binary logs as real servers wrote them, with what a person did: a task table with 16 slices in
// the database `shop`, and other tables beside it.
#pragma once

#include <string>
#include <vector>

namespace millrace::engine {

struct RecordedEvent {
  std::string what;  // of the statement that it belongs to
  std::vector<unsigned char> bytes;
};

// MariaDB 10.11 with binlog_format=MIXED, its default.
std::vector<RecordedEvent> RecordedByMariadb();

}  // namespace millrace::engine
