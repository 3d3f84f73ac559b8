#include "coordinator/app/config_history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kKept = 50;

std::string Folder(const std::string& part) { return "/history/" + part; }

// Sorted as text, they are sorted by number.
std::string NodeName(std::int32_t version) {
  char name[16];
  std::snprintf(name, sizeof name, "%010d", version);
  return name;
}

std::string Entry(const std::string& at, const std::string& by, const std::string& text) {
  return JsonText({{"at", at}, {"by", by}, {"document", text}});
}

ConfigChange ReadEntry(const std::string& name, const std::string& text) {
  ConfigChange change;
  change.version = static_cast<std::int32_t>(std::strtol(name.c_str(), nullptr, 10));
  const auto json = ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) return change;
  change.at = json.value("at", "");
  change.by = json.value("by", "");
  change.text = json.value("document", "");
  return change;
}

}  // namespace

Result<std::int32_t> SetConfig(ClusterClient& client, const ConfigNode& node, const std::string& text,
                               const std::string& by) {
  auto names = client.List(Folder(node.part));
  if (!names) return Fail(names.error());
  if (names->empty()) {
    Status made = client.Write({{TreeWrite::Kind::Create, Folder(node.part)}});
    if (!made && made.error().code != ErrorCode::Conflict) return Fail(made.error());
  }
  const std::string path = "/config/" + node.part;
  const std::int32_t next = node.version ? *node.version + 1 : 0;
  std::vector<TreeWrite> writes;
  if (node.version) {
    writes.push_back({TreeWrite::Kind::Set, path, text, *node.version});
  } else {
    writes.push_back({TreeWrite::Kind::Create, path, text});
  }
  const std::string before = node.version ? NodeName(*node.version) : "";
  const bool noted = before.empty() || std::find(names->begin(), names->end(), before) != names->end();
  if (!noted) {  // set by other means, or as the cluster was made: kept for a rollback
    writes.push_back(
        {TreeWrite::Kind::Create, Folder(node.part) + "/" + before, Entry("", "not noted", node.text)});
  }
  writes.push_back({TreeWrite::Kind::Create, Folder(node.part) + "/" + NodeName(next),
                    Entry(FormatTime(SystemClock().WallNow()), by, text)});
  for (std::size_t i = 0; i + kKept < names->size(); ++i) {
    writes.push_back({TreeWrite::Kind::Remove, Folder(node.part) + "/" + (*names)[i]});
  }
  Status done = client.Write(std::move(writes));
  if (done) return next;
  if (done.error().code != ErrorCode::Conflict) return Fail(done.error());
  return Fail(ErrorCode::Conflict,
              "somebody else has changed config/" + node.part + " meanwhile: look at it, and try again");
}

Result<std::vector<ConfigChange>> ReadHistory(ClusterClient& client, const std::string& part) {
  auto names = client.List(Folder(part));
  if (!names) return Fail(names.error());
  std::vector<ConfigChange> changes;
  for (const std::string& name : *names) {
    auto node = client.Get(Folder(part) + "/" + name);
    if (!node) return Fail(node.error());
    if (*node) changes.push_back(ReadEntry(name, (*node)->data));
  }
  auto current = client.Get("/config/" + part);
  if (!current) return Fail(current.error());
  if (*current && (changes.empty() || changes.back().version != (*current)->version)) {
    changes.push_back({(*current)->version, "", "not noted", (*current)->data});
  }
  return changes;
}

}  // namespace millrace
