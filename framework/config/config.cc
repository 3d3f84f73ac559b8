#include "framework/config/config.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/config/parts.h"
#include "framework/config/position_map.h"
#include "framework/config/section.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

constexpr std::size_t kLargest = 1024 * 1024;  // a node's limit, too

Config ReadConfig(const json& value, Problems& problems, UnknownZones zones) {
  Config config;
  Section document(value, {}, problems);
  if (const json* part = document.Child("engine")) config.engine = ReadEngine(*part, problems);
  if (const json* part = document.Child("handlers")) config.handlers = ReadHandlers(*part, problems, zones);
  if (const json* part = document.Child("shards")) config.shards = ReadShards(*part, problems);
  if (const json* part = document.Child("schedules"))
    config.schedules = ReadSchedules(*part, problems, zones);
  if (const json* part = document.Child("alerts")) config.alerts = ReadAlerts(*part, problems);
  document.Done();
  AddAlertCarriers(config);
  return config;
}

using nlohmann::ordered_json;

template <class Value>
ordered_json Listed(const Value& value, void (*list)(const Value&, KeyLister&)) {
  KeyLister keys;
  list(value, keys);
  return keys.values();
}

template <class Value>
ordered_json Listed(const std::map<std::string, Value>& values, void (*list)(const Value&, KeyLister&)) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, value] : values) {
    if (!IsBuiltIn(name)) all[name] = Listed(value, list);
  }
  return all;
}

}  // namespace

const HandlerConfig& Config::HandlerFor(const std::string& type) const {
  static const HandlerConfig defaults;
  const auto found = handlers.find(type);
  return found == handlers.end() ? defaults : found->second;
}

std::vector<BandConfig> HandlerConfig::BandsInForce() const {
  std::vector<BandConfig> in_force;
  if (scan) return in_force;
  std::copy_if(bands.begin(), bands.end(), std::back_inserter(in_force),
               [](const BandConfig& band) { return band.every > Micros(0) || band.most > 0; });
  return in_force;
}

std::optional<BandConfig> HandlerConfig::BandOf(std::uint32_t urgency) const {
  for (const BandConfig& band : BandsInForce()) {
    if (band.Covers(urgency)) return band;
  }
  return std::nullopt;
}

ScanRules Config::Scans() const {
  ScanRules scans;
  for (const auto& [type, handler] : handlers) {
    if (handler.scan) scans[type] = *handler.scan;
  }
  return scans;
}

Result<Config> ParseConfig(std::string_view text, std::string_view source, UnknownZones zones,
                           LineNumbers lines) {
  if (text.size() > kLargest) {
    return Fail(ErrorCode::Invalid,
                std::string(source) + ": larger than 1 MiB; a configuration is not that long");
  }
  const PositionMap positions = PositionMap::Read(text);
  Problems problems(positions, std::string(source), lines);
  for (const TextProblem& problem : positions.problems())
    problems.AddAt(problem.line, problem.path, problem.what);
  if (!problems.empty()) return Fail(ErrorCode::Invalid, problems.Text());
  const json value = json::parse(text.begin(), text.end(), nullptr, false, true);
  if (value.is_discarded()) {
    return Fail(ErrorCode::Invalid, std::string(source) + ":1: not valid JSON; write one object, {…}");
  }
  Config config = ReadConfig(value, problems, zones);
  if (!problems.empty()) return Fail(ErrorCode::Invalid, problems.Text());
  return config;
}

Result<std::string> ReadConfigFile(const std::string& path) {
  auto text = ReadFileText(path);
  if (!text)
    return Fail(ErrorCode::Invalid,
                "the configuration file " + text.error().message + "; give another with --config");
  return text;
}

Result<Config> LoadConfigFile(const std::string& path) {
  BOOST_OUTCOME_TRY(text, ReadConfigFile(path));
  return ParseConfig(text, path);
}

std::string ConfigText(const Config& config) {
  const ordered_json document{{"engine", Listed(config.engine, ListEngine)},
                              {"handlers", Listed(config.handlers, ListHandler)},
                              {"shards", Listed(config.shards, ListShard)},
                              {"schedules", Listed(config.schedules, ListSchedule)},
                              {"alerts", Listed(config.alerts, ListAlert)}};
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

const std::vector<std::string>& HandlerKeyNames() {
  static const std::vector<std::string> names = [] {
    KeyLister keys;
    ListHandler({}, keys);
    return keys.keys();
  }();
  return names;
}

}  // namespace millrace::engine
