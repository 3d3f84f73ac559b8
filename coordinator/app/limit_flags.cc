#include "coordinator/app/limit_flags.h"

#include <algorithm>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/worker_place.h"
#include "framework/base/suggest.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {

Status CheckTypes(const std::vector<std::string>& wanted, const std::vector<std::string>& types) {
  for (const std::string& type : wanted) {
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    std::string all;
    for (const std::string& known : types) all += (all.empty() ? "" : ", ") + known;
    const std::string hint = DidYouMean(type, types);
    return Fail(ErrorCode::Invalid,
                "--handlers: no plugin here runs the task type '" + type + "'" +
                    (!hint.empty() ? hint
                     : all.empty() ? ""
                                   : "; there are " + all) +
                    "; name their folder with --plugins, or configure the type with the handler it uses");
  }
  return {};
}

void TellNumbersBeyond(const std::vector<std::uint32_t>& numbers, const Shards& shards) {
  std::uint32_t most = 0;
  for (const auto& [name, shard] : shards) {
    if (shard.tables.empty()) return;
    for (const TableInfo& info : shard.tables) most = std::max(most, info.slices);
  }
  const auto first = std::lower_bound(numbers.begin(), numbers.end(), most);
  if (most == 0 || first == numbers.end()) return;
  PrintNote("note: --load-balance: no table has the numbers " + FormatLoadBalance({first, numbers.end()}) +
            "; the tables have 0 to " + std::to_string(most - 1));
}

Status CheckLimits(const MillFlags& flags, const Settings& settings, const PluginSet& plugins) {
  std::vector<std::uint32_t> numbers;
  if (!flags.load_balance.empty()) {
    auto parsed = ParseLoadBalance(flags.load_balance);
    if (!parsed) return Fail(ErrorCode::Invalid, "--load-balance: " + parsed.error().message);
    numbers = std::move(*parsed);
  }
  if (flags.handlers.empty() && numbers.empty()) return {};
  auto client = ClusterClient::Open(*settings.cluster);
  if (!client) return {};
  ClusterConnection cluster{settings, std::move(*client)};
  auto shards = OpenShards(cluster);  // reads the configuration, whatever it says of shards
  BOOST_OUTCOME_TRYV(CheckTypes(flags.handlers, TypesRun(cluster.settings.config, plugins, {})));
  if (!shards || numbers.empty()) return {};
  for (auto& [name, shard] : *shards) {
    if (!Prepare(shard, Missing::Refuse)) return {};
  }
  TellNumbersBeyond(numbers, *shards);
  return {};
}

}  // namespace millrace::engine
