#include "framework/config/parts.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

bool IsShardName(const std::string& name) {
  return !name.empty() && name.size() <= 48 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

// Reads or lists them, as Section and KeyLister do.
template <class Keys, class Shard>
void ShardKeys(Keys& keys, Shard& shard) {
  keys.Text("url", shard.url, 4096);
  keys.Text("password_file", shard.password_file, 4096);
  keys.Tables("tables", shard.tables);
  keys.Integer("slices", shard.slices, 1, kMaxSlices);
  keys.Integer("max_transactions", shard.max_transactions, 1, 100'000);
}

ShardConfig ReadShard(const json& value, const KeyPath& path, Problems& problems) {
  ShardConfig shard;
  Section section(value, path, problems);
  ShardKeys(section, shard);
  if (value.is_object() && !value.contains("url")) {
    problems.Add(path, "the shard has no url; write \"url\": \"mysql://user@host:port/database\"");
  } else if (!shard.url.empty()) {
    if (const auto url = ParseStoreUrl(shard.url); !url) section.Add("url", url.error().message);
  }
  section.Done();
  return shard;
}

}  // namespace

std::map<std::string, ShardConfig> ReadShards(const json& value, Problems& problems) {
  std::map<std::string, ShardConfig> shards;
  Section section(value, {"shards"}, problems);
  for (const auto& [name, shard] : section.Every().items()) {
    if (!IsShardName(name)) {
      section.Add(name, "a shard's name is made of lower-case letters, digits, '_' and '-', at most 48");
    }
    shards[name] = ReadShard(shard, section.Path(name), problems);
  }
  return shards;
}

void ListShard(const ShardConfig& shard, KeyLister& keys) { ShardKeys(keys, shard); }

}  // namespace millrace::engine
