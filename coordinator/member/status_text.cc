#include "coordinator/member/status_text.h"

#include <nlohmann/json.hpp>

#include "coordinator/coordination/brief.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongest = 80 * 1024;
constexpr std::size_t kRefusalsTold = 20;

}  // namespace

std::string StatusText(const std::string& incarnation, const MemberView& view, const std::string& more) {
  ordered_json own{{"incarnation", incarnation},
                   {"epoch", view.epoch},
                   {"generation", view.generation},
                   {"slices", view.slice_count},
                   {status_key::kRefused, Brief(view.refusals, kRefusalsTold)}};
  if (!view.ignored.empty()) own[status_key::kIgnored] = Brief({view.ignored}, 1);
  const ordered_json added = ordered_json::parse(more, nullptr, false);
  if (!added.is_object()) return JsonText(own);
  ordered_json whole = own;
  whole.update(added);
  std::string text = JsonText(whole);
  if (text.size() <= kLongest) return text;
  ordered_json brief = own;
  brief["cut"] = "it has too much to tell: these are its numbers";
  for (const auto& [key, value] : added.items()) {
    if (value.is_number()) brief[key] = value;
  }
  return JsonText(brief);
}

}  // namespace millrace::engine
