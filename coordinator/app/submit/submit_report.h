// What is told of a submission: what went in, what did not and why, and where to go on.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/app/submit/submitter.h"

namespace millrace::engine {

// What was asked for, as far as it is told.
struct SubmitAsked {
  std::string file;   // `-` is standard input; empty: a query, or no rows
  bool rows = false;  // of a file or a query; otherwise so many of the same:
  std::uint64_t count = 1;
  std::string key;     // of the one task
  bool keyed = false;  // a column of the rows is their key
  bool all_or_nothing = false;
};

// The rows that did not go in, and why; of many the first.
void PrintFaults(const SubmitAsked& asked, const std::string& shard, const SubmitTotals& totals);
// These, and what went in.
void PrintSubmitted(const SubmitAsked& asked, const std::string& shard, const TableName& table,
                    const SubmitTotals& totals);
nlohmann::ordered_json ToJson(const std::string& shard, const TableName& table, const SubmitTotals& totals);

}  // namespace millrace::engine
