#include "framework/config/parts.h"
#include "framework/store/url.h"
#include "framework/task/slice_name.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

constexpr auto kDoorbellKeys = [](auto& keys, auto& doorbell) {
  keys.Text("account", doorbell.account, 80);
  keys.Text("password_file", doorbell.password_file, 4096);
};

// Reads or lists them, as Section and KeyLister do.
template <class Keys, class Shard>
void ShardKeys(Keys& keys, Shard& shard) {
  keys.Text("url", shard.url, 4096);
  keys.Text("password_file", shard.password_file, 4096);
  keys.OptionalPart("doorbell", shard.doorbell, kDoorbellKeys);
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
    const auto url = ParseStoreUrl(shard.url);
    if (!url) section.Add("url", url.error().message);
    if (url && url->kind == StoreUrl::Kind::Sqlite && shard.doorbell) {
      section.Add("doorbell", "a SQLite file is watched anyway: leave this key out");
    }
  }
  if (shard.doorbell && shard.doorbell->account.empty() && !shard.doorbell->password_file.empty()) {
    section.Add("doorbell",
                "there is a password_file and no account: name both, or neither for the shard's own");
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
