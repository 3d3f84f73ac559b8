#include "coordinator/coordination/config_layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/config/key_lister.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

json Parsed(std::string_view text) {
  json value = json::parse(text.begin(), text.end(), nullptr, false, true);
  return value.is_object() ? value : json::object();
}

// The part as a whole document, with its lines where they were.
std::string AsDocument(const std::string& part, std::string_view text) {
  return "{\"" + part + "\":" + std::string(text) + "\n}";
}

// Later sources go over earlier ones.
void AddValues(const json& value, const std::string& path, const std::string& source,
               std::map<std::string, ConfigLayers::Value>& values) {
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      AddValues(child, path.empty() ? key : path + "." + key, source, values);
    }
    return;
  }
  values[path] = {value.dump(), source};
}

void AddBrought(const std::string& type, const HandlerConfig& config, const ConfigLayers::Brought& brought,
                std::map<std::string, ConfigLayers::Value>& values) {
  const std::string path = "handlers." + type;
  const std::string source = "code of plugin " + brought.plugin;
  AddValues(Parsed(DefaultsText(brought.defaults)), path, source, values);
  if (!brought.defaults.next_retry || config.given.contains("retry.delays")) return;
  KeyLister ladder;
  ladder.Durations("delays", Over(brought.defaults, config).retry.delays, Micros(0), Micros::max());
  values[path + ".retry.delays"] = {ladder.values()["delays"].dump(),
                                    source + ", which NextRetry may change"};
}

// Only the process on its own host could open it.
Status RefuseSqlite(const Config& config) {
  for (const auto& [name, shard] : config.shards) {
    if (!shard.url.starts_with("sqlite:")) continue;
    return Fail(ErrorCode::Invalid, "config/shards: shards." + name +
                                        ".url: a cluster's shard is on a server; SQLite files are for "
                                        "millrace run");
  }
  return {};
}

const std::string* Find(const std::map<std::string, std::string>& texts, const std::string& part) {
  const auto found = texts.find(part);
  return found == texts.end() ? nullptr : &found->second;
}

}  // namespace

bool IsConfigPart(std::string_view name) {
  return std::find(kConfigParts.begin(), kConfigParts.end(), name) != kConfigParts.end();
}

Status ValidateConfigPart(const std::string& part, std::string_view text, UnknownZones zones,
                          LineNumbers lines) {
  BOOST_OUTCOME_TRY(config, ParseConfig(AsDocument(part, text), "config/" + part, zones, lines));
  // A text that closes its object early would have been taken for more than one part.
  if (json::accept(text.begin(), text.end(), true)) return RefuseSqlite(config);
  return Fail(ErrorCode::Invalid, "config/" + part + ": not valid JSON; write one object, {…}");
}

ConfigLayers::ConfigLayers(std::string file_text, std::string file_name, OwnStore store)
    : file_text_(std::move(file_text)),
      file_name_(std::move(file_name)),
      store_(std::move(store)),
      effective_(std::make_shared<const Config>()) {
  (void)Adopt({});  // a checked file alone is good
}

bool ConfigLayers::SetPart(const std::string& part, std::string_view text) {
  const std::string wanted(text.empty() ? "{}" : text);
  const auto known = newest_.find(part);
  if (known != newest_.end() && known->second == wanted) return false;
  newest_[part] = wanted;
  faults_.erase(part);
  if (Status valid = ValidateConfigPart(part, wanted, UnknownZones::Contained); !valid)
    faults_[part] = valid.error().message;
  Settle();
  return true;
}

bool ConfigLayers::RefusePart(const std::string& part, const std::string& why) {
  const auto known = faults_.find(part);
  if (known != faults_.end() && known->second == why) return false;
  newest_.erase(part);
  faults_[part] = why;
  Settle();
  return true;
}

// Puts into force what can be: all of the newest texts where they are good together, else each that is good
// with what is in force already.
void ConfigLayers::Settle() {
  refusals_ = faults_;
  Texts waiting;
  Texts all = in_force_;
  for (const auto& [part, text] : newest_) {
    const std::string* known = Find(in_force_, part);
    if (faults_.contains(part) || (known != nullptr && *known == text)) continue;
    waiting[part] = all[part] = text;
  }
  // With nothing new, too: that a part can't be read may say something of what lies over it.
  if (Adopt(all) || waiting.empty()) return;
  for (bool adopted = true; adopted;) {
    adopted = false;
    for (auto it = waiting.begin(); it != waiting.end();) {
      Texts texts = in_force_;
      texts[it->first] = it->second;
      const Status good = Adopt(std::move(texts));
      if (good) {
        refusals_.erase(it->first);
        it = waiting.erase(it);
        adopted = true;
      } else {
        refusals_[it->first] = good.error().message;
        ++it;
      }
    }
  }
}

// Where the first text that was read of them can't be understood, somebody has named shards all the same.
bool ConfigLayers::ClusterNamesShards(const Texts& texts) const {
  const std::string* shards = Find(texts, "shards");
  return shards == nullptr ? faults_.contains("shards") : !Parsed(*shards).empty();
}

// All of these texts under the file, or nothing.
Status ConfigLayers::Adopt(Texts texts) {
  json whole = json::object();
  for (const auto& [part, text] : texts) whole[part] = Parsed(text);
  json over = Parsed(file_text_);
  if (ClusterNamesShards(texts)) {
    over.erase("shards");
  } else if (!store_.url.empty()) {
    over["shards"] = {{"main", {{"url", store_.url}}}};
  }
  whole.merge_patch(over);
  BOOST_OUTCOME_TRY(config, ParseConfig(whole.dump(), "the cluster's configuration", UnknownZones::Contained,
                                        LineNumbers::Untold));
  effective_ = std::make_shared<const Config>(std::move(config));
  in_force_ = std::move(texts);
  return {};
}

std::map<std::string, ConfigLayers::Value> ConfigLayers::Values(const std::map<std::string, Brought>& brought,
                                                                const std::string& also) const {
  std::map<std::string, Value> values;
  Config shown = *effective_;
  if (!also.empty()) shown.handlers.try_emplace(also);
  AddValues(Parsed(ConfigText(shown)), "", "default", values);
  for (const auto& [name, handler] : brought) {
    if (!effective_->handlers.contains(name)) AddBrought(name, {}, handler, values);
  }
  for (const auto& [type, config] : effective_->handlers) {
    const auto handler = brought.find(config.ServedBy(type));
    if (handler != brought.end()) AddBrought(type, config, handler->second, values);
  }
  for (const auto& [part, text] : in_force_) AddValues(Parsed(text), part, "config/" + part, values);
  json file = Parsed(file_text_);
  const bool own = !ClusterNamesShards(in_force_);
  if (!own || !store_.url.empty()) file.erase("shards");
  AddValues(file, "", file_name_, values);
  if (own && !store_.url.empty()) AddValues(store_.url, "shards.main.url", store_.from, values);
  return values;
}

std::string ConfigLayers::Ignored() const {
  if (!ClusterNamesShards(in_force_)) return "";
  constexpr const char* kWhy = " is ignored: config/shards names the cluster's shards";
  if (!store_.url.empty()) {
    const bool named = std::any_of(effective_->shards.begin(), effective_->shards.end(),
                                   [&](const auto& shard) { return shard.second.url == store_.url; });
    return named ? "" : store_.from + " " + store_.url + kWhy;
  }
  return Parsed(file_text_).value("shards", json::object()).empty() ? "" : "shards in " + file_name_ + kWhy;
}

}  // namespace millrace::engine
