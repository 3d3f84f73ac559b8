// What a worker writes into status/<id>.
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "coordinator/coordination/json_text.h"
#include "coordinator/member/member.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLongestStatus = 80 * 1024;  // a third of what a node may hold
constexpr std::size_t kRefusalsTold = 20;

// Of what a worker adds its numbers, and what others go by: see ReadStatus. Without that a leader would take
// its limits for unused, and its shares for another life's.
nlohmann::ordered_json Essence(const nlohmann::ordered_json& added) {
  auto essence = nlohmann::ordered_json::object();
  for (const auto& [key, value] : added.items()) {
    if (value.is_number() || key == status_key::kLimits) essence[key] = value;
  }
  const auto keep = [&](const char* part, std::initializer_list<const char*> keys) {
    if (!added.contains(part)) return;
    for (const auto& [name, told] : added.at(part).items()) {
      for (const char* key : keys) {
        if (told.contains(key)) essence[part][name][key] = told.at(key);
      }
    }
  };
  keep(status_key::kShards, {status_key::kIncarnation});
  keep(status_key::kBreakers, {"open", status_key::kNextProbe});
  return essence;
}

}  // namespace

std::string StatusText(const std::string& incarnation, const MemberView& view, const std::string& more) {
  using nlohmann::ordered_json;
  ordered_json own{{"incarnation", incarnation},
                   {"epoch", view.epoch},
                   {status_key::kGeneration, view.generation},
                   {status_key::kSharesGeneration, view.shares_generation},
                   {"slices", view.slice_count},
                   {status_key::kRefused, Brief(view.refusals, kRefusalsTold)}};
  for (const auto& [part, read] : view.config_read) {
    ordered_json& told = own[status_key::kConfig][part];
    told[status_key::kConfigVersion] = read.version;
    told[status_key::kConfigMade] = read.made;
    if (!read.refused.empty()) told[status_key::kConfigRefused] = Brief({read.refused}, 1).front();
    for (const auto& [type, why] : read.types) {
      ordered_json& types = told[status_key::kConfigTypes];
      if (types.size() < kRefusalsTold) types[type] = Brief({why}, 1).front();
    }
  }
  if (!view.ignored.empty()) own[status_key::kIgnored] = Brief({view.ignored}, 1);
  const ordered_json added = ordered_json::parse(more, nullptr, false);
  if (!added.is_object()) return JsonText(own);
  ordered_json whole = own;
  whole.update(added);
  std::string text = JsonText(whole);
  if (text.size() <= kLongestStatus) return text;
  own["cut"] = "it has too much to tell: these are its numbers, and what others go by";
  own.update(Essence(added));
  return JsonText(own);
}

}  // namespace millrace::engine
