// What an event of a server's binary log says to a doorbell. Fed with the events of one connection in their
// order; whatever bytes it is given, it reads none but those, and keeps little. Pure, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "framework/doorbell/binlog_rows.h"
#include "framework/store/change_feed.h"

namespace millrace::engine {

class BinlogReader {
 public:
  // Whether a server takes two names that differ in the case of letters for one (lower_case_table_names is
  // not 0). Its log has them as it keeps them, and not as a client spells them.
  enum class Case { Matters, Ignored };

  // Rings for tables of `database` that are watched.
  BinlogReader(std::string database, IsWatched watched, Case letters = Case::Matters)
      : database_(std::move(database)), watched_(std::move(watched)), letters_(letters) {}

  struct Heard {
    std::optional<Ring> ring = {};
    bool beat = false;       // a worker's
    bool wrote = false;      // anything else into the database
    bool caught_up = false;  // a heartbeat: the server has nothing more to tell now
    bool rotated = false;    // this file of the log has ended
    // When it was logged, in seconds since 1970 by the server's clock.
    std::optional<std::uint32_t> logged_at = {};
  };
  // `event` with its header of 19 bytes, and with its checksum if the events before said that it has one.
  Heard Read(ByteSpan event);

 private:
  struct Table {
    TableName name;
    std::optional<BinlogColumns> columns;  // nullopt: they made no sense
  };

  bool IsOurs(std::string_view database) const;
  bool Names(std::string_view statement) const;
  void Begin(ByteSpan event);
  void MapTable(BinlogBytes bytes, Heard& heard);
  std::optional<Ring> Rows(unsigned type, BinlogBytes bytes) const;
  std::optional<Ring> Statement(unsigned type, BinlogBytes bytes) const;

  const std::string database_;
  const IsWatched watched_;
  const Case letters_;
  bool checksums_ = false;
  std::map<std::uint64_t, Table> tables_;  // those that are watched, by the log's number
};

}  // namespace millrace::engine
