#include "framework/store/sql/claimers.h"

#include <charconv>
#include <optional>

namespace millrace::engine::sql {
namespace {

std::optional<std::uint64_t> ParseNumberText(std::string_view name) {
  if (!name.starts_with('#')) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 1, end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t DrawNumber(Random& random) {
  std::uint64_t number = kNobody;
  while (number <= kForgotten) number = random.Next() >> 1;
  return number;
}

std::string NumberText(std::uint64_t number) { return "#" + std::to_string(number); }

void Claimers::Learn(const std::string& name, std::uint64_t number) {
  MutexLock lock(mutex_);
  numbers_[name] = number;
  names_[number] = name;
}

Result<Claimer> Claimers::ByName(Connection& db, const std::string& name) {
  if (name.empty()) return Claimer{};
  {
    MutexLock lock(mutex_);
    if (const auto known = numbers_.find(name); known != numbers_.end()) return Claimer{known->second, name};
  }
  if (const auto number = ParseNumberText(name)) return Claimer{*number, name};
  std::uint64_t number = kNobody;
  BOOST_OUTCOME_TRYV(db.Query("SELECT number FROM millrace_incarnations WHERE id=?", {name},
                              [&](const Row& row) { number = row.Number(1); }));
  if (number != kNobody) Learn(name, number);
  return Claimer{number, name};
}

Result<std::string> Claimers::NameOf(Connection& db, std::uint64_t number) {
  if (number == kNobody) return std::string();
  {
    MutexLock lock(mutex_);
    if (const auto known = names_.find(number); known != names_.end()) return known->second;
  }
  std::string name;
  BOOST_OUTCOME_TRYV(db.Query("SELECT id FROM millrace_incarnations WHERE number=?", {number},
                              [&](const Row& row) { name = row.Text(1); }));
  if (name.empty()) return NumberText(number);
  Learn(name, number);
  return name;
}

}  // namespace millrace::engine::sql
