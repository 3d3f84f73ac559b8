#include "coordinator/coordination/config_change.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"

namespace millrace {
namespace {

constexpr std::size_t kKept = 50;

}  // namespace

std::string SetAt(const TreeNode& node) { return node.set_at == WallTime{} ? "" : FormatTime(node.set_at); }

std::string HistoryFolder(const std::string& part) { return "/history/" + part; }

std::string HistoryName(std::int32_t version) {
  char name[16];
  std::snprintf(name, sizeof name, "%010d", version);
  return name;
}

ConfigChange ReadChange(const std::string& name, std::string_view text) {
  ConfigChange change;
  change.version = static_cast<std::int32_t>(std::strtol(name.c_str(), nullptr, 10));
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return change;
  const auto read = [&](const char* key, std::string& into) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) into = found->get<std::string>();
  };
  read("at", change.at);
  read("by", change.by);
  read("document", change.text);
  return change;
}

std::vector<TreeWrite> NoteChange(const std::string& part, const ConfigChange& change,
                                  const std::vector<std::string>& noted) {
  const std::string folder = HistoryFolder(part) + "/";
  const std::string name = HistoryName(change.version);
  // A node that was removed and made anew counts its versions from 0 again.
  const bool known = std::binary_search(noted.begin(), noted.end(), name);
  std::vector<TreeWrite> writes{
      {known ? TreeWrite::Kind::Set : TreeWrite::Kind::Create, folder + name,
       JsonText({{"at", change.at}, {"by", change.by}, {"document", change.text}})}};
  for (std::size_t i = 0; i + kKept < noted.size(); ++i) {
    if (noted[i] != name) writes.push_back({TreeWrite::Kind::Remove, folder + noted[i]});
  }
  return writes;
}

}  // namespace millrace
