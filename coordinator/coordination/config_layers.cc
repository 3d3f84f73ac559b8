#include "coordinator/coordination/config_layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace millrace {
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

}  // namespace

bool IsConfigPart(std::string_view name) {
  return std::find(kConfigParts.begin(), kConfigParts.end(), name) != kConfigParts.end();
}

Status ValidateConfigPart(const std::string& part, std::string_view text) {
  const auto config = ParseConfig(AsDocument(part, text), "config/" + part);
  if (!config) return Fail(config.error());
  // A text that closes its object early would have been taken for more than one part.
  if (json::accept(text.begin(), text.end(), true)) return {};
  return Fail(ErrorCode::Invalid, "config/" + part + ": not valid JSON; write one object, {…}");
}

ConfigLayers::ConfigLayers(std::string file_text, std::string file_name)
    : file_text_(std::move(file_text)),
      file_name_(std::move(file_name)),
      effective_(std::make_shared<const Config>()) {
  (void)Adopt({});  // a checked file alone is good
}

bool ConfigLayers::SetPart(const std::string& part, std::string_view text) {
  const std::string wanted(text.empty() ? "{}" : text);
  const auto known = newest_.find(part);
  if (known != newest_.end() && known->second == wanted) return false;
  newest_[part] = wanted;
  faults_.erase(part);
  if (Status valid = ValidateConfigPart(part, wanted); !valid) faults_[part] = valid.error().message;
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
    if (faults_.contains(part) || in_force_[part] == text) continue;
    waiting[part] = all[part] = text;
  }
  if (waiting.empty() || Adopt(all)) return;
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

// All of these texts under the file, or nothing.
Status ConfigLayers::Adopt(Texts texts) {
  json whole = json::object();
  for (const auto& [part, text] : texts) {
    if (!text.empty()) whole[part] = Parsed(text);
  }
  whole.merge_patch(Parsed(file_text_));
  auto config = ParseConfig(whole.dump(), "the cluster's configuration");
  if (!config) return Fail(config.error());
  effective_ = std::make_shared<const Config>(std::move(*config));
  in_force_ = std::move(texts);
  return {};
}

std::map<std::string, ConfigLayers::Value> ConfigLayers::Values() const {
  std::map<std::string, Value> values;
  AddValues(Parsed(ConfigText(*effective_)), "", "default", values);
  for (const auto& [part, text] : in_force_) AddValues(Parsed(text), part, "config/" + part, values);
  AddValues(Parsed(file_text_), "", file_name_, values);
  return values;
}

}  // namespace millrace
