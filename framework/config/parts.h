// The readers of a document's parts, one file each, and what lists the same keys again.
#pragma once

#include <nlohmann/json.hpp>

#include "framework/config/config.h"
#include "framework/config/key_lister.h"
#include "framework/config/schedule_config.h"
#include "framework/config/section.h"

namespace millrace::engine {

EngineConfig ReadEngine(const nlohmann::json& value, Problems& problems);
std::map<std::string, HandlerConfig> ReadHandlers(const nlohmann::json& value, Problems& problems,
                                                  UnknownZones zones = UnknownZones::Refused);
std::map<std::string, ShardConfig> ReadShards(const nlohmann::json& value, Problems& problems);
std::map<std::string, AlertConfig> ReadAlerts(const nlohmann::json& value, Problems& problems);
std::map<std::string, ScheduleConfig> ReadSchedules(const nlohmann::json& value, Problems& problems,
                                                    UnknownZones zones = UnknownZones::Refused);

void ListEngine(const EngineConfig& engine, KeyLister& keys);
void ListHandler(const HandlerConfig& handler, KeyLister& keys);
void ListShard(const ShardConfig& shard, KeyLister& keys);
void ListAlert(const AlertConfig& alert, KeyLister& keys);
void ListSchedule(const ScheduleConfig& schedule, KeyLister& keys);

// The keys of policy_config.h, of a part whose other keys stand elsewhere: read and checked, or listed.
void PolicyKeys(Section& keys, HandlerConfig& handler, UnknownZones zones);
void PolicyKeys(KeyLister& keys, const HandlerConfig& handler);
void PolicyKeys(Section& keys, EngineConfig& engine);
void PolicyKeys(KeyLister& keys, const EngineConfig& engine);
// `retry.classes`, each delay up to `longest`; in the order in which they are to be tried.
void RetryClassKeys(Section& retry, std::vector<RetryClass>& classes, Micros longest);
void RetryClassKeys(KeyLister& retry, const std::vector<RetryClass>& classes, Micros longest);

// Enters the types that carry the alerts of a configuration: where to, and by which server.
void AddAlertCarriers(Config& config);

}  // namespace millrace::engine
