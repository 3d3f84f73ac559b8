#include "coordinator/app/config/config_word.h"

#include <poll.h>

#include <algorithm>
#include <map>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;
using State = ConfigWord::State;

constexpr Micros kInForceWithin = std::chrono::seconds(2);
constexpr int kAskAgainMs = 50;

const char* WordOf(State state) {
  switch (state) {
    case State::InForce:
      return "in_force";
    case State::Refused:
      return "refused";
    case State::Silent:
      return "silent";
    case State::Unknown:
      return "unknown";
  }
  return "";
}

std::optional<std::int64_t> NumberIn(const ordered_json& object, const char* key) {
  const ordered_json& number = PartOf(object, key);
  return number.is_number_integer() ? std::optional(number.get<std::int64_t>()) : std::nullopt;
}

// Of those that have not told yet.
Status AskSilent(ClusterClient& client, const ConfigVersion& wanted, std::map<std::string, ConfigWord>& words,
                 BootTime deadline) {
  for (auto& [id, word] : words) {
    if (word.state != State::Silent) continue;
    if (BootClock::now() > deadline) break;  // of thousands the last are not asked
    BOOST_OUTCOME_TRY(node, client.Get("/status/" + id));
    word = ReadConfigWord(id, node ? std::optional(node->data) : std::nullopt, wanted);
  }
  return {};
}

bool AnySilent(const std::map<std::string, ConfigWord>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const auto& entry) { return entry.second.state == State::Silent; });
}

}  // namespace

ConfigWord ReadConfigWord(const std::string& worker, const std::optional<std::string>& status,
                          const ConfigVersion& wanted) {
  ConfigWord word{worker};
  if (!status) return word;
  word.state = State::Unknown;
  const auto told = ParseNode<ordered_json>(*status);
  const ordered_json& parts = PartOf(told, status_key::kConfig);
  if (!parts.is_object()) return word;
  word.state = State::Silent;
  const ordered_json& one = PartOf(parts, wanted.part);
  const auto version = NumberIn(one, status_key::kConfigVersion);
  const std::int64_t made = NumberIn(one, status_key::kConfigMade).value_or(wanted.made);
  const bool of_another = wanted.made != 0 && made != wanted.made;
  if (!version || (of_another ? made < wanted.made : *version < wanted.version)) return word;
  const auto why = one.find(status_key::kConfigRefused);
  word.state = why == one.end() ? State::InForce : State::Refused;
  if (word.state == State::Refused) word.why = why->is_string() ? why->get<std::string>() : why->dump();
  for (const std::string& type : wanted.types) {
    const std::string refusal = TextPart(PartOf(one, status_key::kConfigTypes), type);
    if (refusal.empty()) continue;
    word.state = State::Refused;
    word.why += (word.why.empty() ? "handlers." : "; handlers.") + type + ": " + refusal;
  }
  return word;
}

Result<std::vector<ConfigWord>> AskWorkers(ClusterClient& client, const ConfigVersion& wanted) {
  const BootTime deadline = BootClock::now() + kInForceWithin;
  std::map<std::string, ConfigWord> words;
  BOOST_OUTCOME_TRY(ids, client.List("/workers"));
  for (const std::string& id : ids) words[id] = {id};
  BOOST_OUTCOME_TRYV(AskSilent(client, wanted, words, deadline));
  while (AnySilent(words) && BootClock::now() < deadline) {
    poll(nullptr, 0, kAskAgainMs);
    BOOST_OUTCOME_TRYV(AskSilent(client, wanted, words, deadline));
  }
  if (AnySilent(words)) {  // those that have gone meanwhile follow nothing
    BOOST_OUTCOME_TRY(left, client.List("/workers"));
    std::erase_if(words, [&](const auto& entry) {
      return entry.second.state == State::Silent &&
             std::find(left.begin(), left.end(), entry.first) == left.end();
    });
  }
  std::vector<ConfigWord> all;
  for (auto& [id, word] : words) all.push_back(std::move(word));
  return all;
}

bool AllFollow(const std::vector<ConfigWord>& words) {
  return std::none_of(words.begin(), words.end(), [](const ConfigWord& word) {
    return word.state == State::Refused || word.state == State::Silent;
  });
}

std::string InForceText(const std::vector<ConfigWord>& words) {
  if (words.empty()) return "no worker is there yet";
  const auto in_force = std::count_if(words.begin(), words.end(),
                                      [](const ConfigWord& word) { return word.state == State::InForce; });
  return "in force on " + std::to_string(in_force) + " of " + Count(words.size(), "worker", "workers");
}

std::vector<std::string> Complaints(const std::vector<ConfigWord>& words) {
  std::vector<std::string> lines;
  for (const ConfigWord& word : words) {
    const std::string worker = Escape(word.worker);
    if (word.state == State::Refused) lines.push_back(worker + " refuses it: " + Escape(word.why));
    if (word.state == State::Silent)
      lines.push_back(worker + " has not answered within 2 s: millrace cluster status says how it is");
    if (word.state == State::Unknown)
      lines.push_back(worker + " does not tell what it follows: it runs an older version");
  }
  return lines;
}

// A lease is a promise to the other workers of a shard, for as long as the worker is registered there.
std::string HoldsLater(const std::vector<KeyChange>& changes) {
  const bool lease = std::any_of(changes.begin(), changes.end(),
                                 [](const KeyChange& change) { return change.key == "engine.lease"; });
  if (!lease) return "";
  return "engine.lease holds in each worker from its next registration in a shard, so at the latest from its "
         "next start: until then it keeps the lease that it has";
}

ordered_json ToJson(const std::vector<ConfigWord>& words) {
  ordered_json all = ordered_json::array();
  for (const ConfigWord& word : words) {
    all.push_back({{"worker", word.worker}, {"state", WordOf(word.state)}});
    if (!word.why.empty()) all.back()["why"] = word.why;
  }
  return all;
}

}  // namespace millrace::engine
