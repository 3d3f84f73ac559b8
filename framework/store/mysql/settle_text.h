// The texts of a settle. Pure.
#pragma once

#include <string>
#include <vector>

#include "framework/task/outcome.h"

namespace millrace::engine::mysql {

// Settlements of one table, one attempt number and one end, sorted by id.
struct SettleGroup {
  TableName table;
  std::uint32_t attempt = 0;
  Settlement::To to = Settlement::To::Succeeded;
  bool failed_attempt = false;
  std::vector<const Settlement*> rows;
};

std::vector<SettleGroup> GroupSettlements(const std::vector<const Settlement*>& batch);
std::string IdList(const SettleGroup& group);

// Into the finished or the failed pool; empty for those that go back to waiting.
std::string MoveText(const SettleGroup& group, const std::string& incarnation, const std::string& ids);
std::string DeleteText(const SettleGroup& group, const std::string& incarnation, const std::string& ids);
std::string WaitText(const SettleGroup& group, const std::string& incarnation, const std::string& ids);
// Empty where nothing of the kind is to be written.
std::string AttemptsText(const std::string& incarnation, const std::vector<const Settlement*>& batch);
std::string CountersText(const std::string& incarnation, const std::vector<const Settlement*>& batch);

}  // namespace millrace::engine::mysql
