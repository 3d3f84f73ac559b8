#include "framework/store/batch_store.h"

namespace millrace::engine {

const char* ToString(BatchState state) {
  switch (state) {
    case BatchState::Open:
      return "open";
    case BatchState::Closed:
      return "closed";
    case BatchState::Ended:
      return "ended";
  }
  return "";
}

std::string ToString(const BatchPart& part) { return part.shard + "/" + part.table; }

std::map<std::string, std::vector<TableName>> TablesByShard(const std::vector<BatchPart>& parts) {
  std::map<std::string, std::vector<TableName>> tables;
  for (const BatchPart& part : parts) tables[part.shard].push_back(part.table);
  return tables;
}

BatchSums& BatchSums::operator+=(const BatchSums& other) {
  succeeded += other.succeeded;
  cancelled += other.cancelled;
  failed += other.failed;
  return *this;
}

std::string SuccessKey(const std::string& batch) { return "batch/" + batch + "/success"; }
std::string EndKey(const std::string& batch) { return "batch/" + batch + "/end"; }

}  // namespace millrace::engine
