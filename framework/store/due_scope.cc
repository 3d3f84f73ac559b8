#include "framework/store/due_scope.h"

#include <algorithm>
#include <map>

namespace millrace::engine {
namespace {

bool AsksNothing(const TableSlices& part) {
  return (!part.all && part.slices.empty()) || (part.handlers && part.handlers->empty());
}

template <class Value>
void Unite(std::vector<Value>& into, const std::vector<Value>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

void Add(DueScope& scope, const TableSlices& part) {
  TableSlices& whole = scope.whole;
  scope.parts.push_back(&part);
  if (scope.parts.size() == 1) {
    whole = part;
    return;
  }
  whole.all = whole.all || part.all;
  Unite(whole.slices, part.slices);
  if (!part.handlers || !whole.handlers) {
    whole.handlers.reset();
  } else {
    Unite(*whole.handlers, *part.handlers);
  }
}

}  // namespace

bool TableSlices::Covers(std::uint32_t slice, const std::string& handler) const {
  return (all || std::binary_search(slices.begin(), slices.end(), slice)) && CoversHandler(handler);
}

bool TableSlices::CoversHandler(const std::string& handler) const {
  return !handlers || std::binary_search(handlers->begin(), handlers->end(), handler);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> TableSlices::Ranges() const {
  if (all) return {{0, kMaxSlices - 1}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (const std::uint32_t slice : slices) {
    if (!ranges.empty() && ranges.back().second + 1 == slice) {
      ranges.back().second = slice;
    } else {
      ranges.emplace_back(slice, slice);
    }
  }
  return ranges;
}

bool DueScope::Covers(const DueGroup& group) const {
  if (!whole.Covers(group.slice, group.handler)) return false;
  if (parts.empty()) return true;
  return std::any_of(parts.begin(), parts.end(),
                     [&](const TableSlices* part) { return part->Covers(group.slice, group.handler); });
}

std::vector<DueScope> ScopesOf(std::span<const TableSlices> tables) {
  std::map<TableName, DueScope> by_table;
  for (const TableSlices& part : tables) {
    if (AsksNothing(part)) continue;
    Add(by_table.try_emplace(part.table, DueScope{{.table = part.table}}).first->second, part);
  }
  std::vector<DueScope> scopes;
  for (auto& [table, scope] : by_table) {
    if (scope.parts.size() == 1) scope.parts.clear();
    scopes.push_back(std::move(scope));
  }
  return scopes;
}

}  // namespace millrace::engine
