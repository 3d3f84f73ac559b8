#include "framework/store/sql/connection.h"

#include <cassert>
#include <iterator>

#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

std::string_view Meaning(const Dialect& dialect, std::string_view word) {
  const std::pair<std::string_view, const char*> words[] = {
      {"now", dialect.now},       {"after", dialect.after},     {"primary", dialect.primary},
      {"lock", dialect.lock},     {"share", dialect.share},     {"free", dialect.free},
      {"upsert", dialect.upsert}, {"brought", dialect.brought}, {"enter", dialect.enter},
      {"tuples", dialect.tuples}, {"end", dialect.end},         {"tables", dialect.tables},
      {"same", dialect.same},     {"due", dialect.due},         {"held", dialect.held},
      {"remove", dialect.remove}};
  for (const auto& [name, meaning] : words) {
    if (name == word) return meaning;
  }
  assert(!"a word of the dialect");
  return {};
}

}  // namespace

std::string Expand(const Dialect& dialect, std::string_view text) {
  std::string out;
  out.reserve(text.size() + 100);
  while (true) {
    const std::size_t at = text.find('$');
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
    const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), text.size());
    std::string_view meaning = Meaning(dialect, text.substr(0, end));
    text.remove_prefix(end);
    std::string_view argument;
    if (text.starts_with('(')) {
      const std::size_t close = text.find(')');
      argument = text.substr(1, close - 1);
      text.remove_prefix(close + 1);
    }
    for (std::size_t mark = meaning.find('@'); mark != std::string_view::npos; mark = meaning.find('@')) {
      out += meaning.substr(0, mark);
      out += argument;
      meaning.remove_prefix(mark + 1);
    }
    out += meaning;
  }
}

std::optional<WallTime> Row::Time(unsigned column) const { return ParseTime(Text(column)); }

Status Connection::Query(std::string_view text, Values values, const OnRow& on_row) {
  return RunQuery(Expand(dialect_, text), values, on_row);
}

Result<std::uint64_t> Connection::Write(std::string_view text, Values values) {
  return RunWrite(Expand(dialect_, text), values);
}

}  // namespace millrace::engine::sql
