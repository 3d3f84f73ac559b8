#include "coordinator/doctor/findings.h"

namespace millrace::engine::doctor {
namespace {

const char* RemedyOf(const ScheduleFacts& schedule) {
  if (schedule.trouble == "handler")
    return "its tasks would wait for ever: correct its handler, or start a worker with the plugin";
  if (schedule.trouble == "place")
    return "it does not fire: correct its shard or table, or make the table with millrace schema apply";
  if (schedule.trouble == "key")
    return "give one of the two another \"key\", such as one that begins with its name";
  if (schedule.trouble == "fan_out")
    return "its query fails, or takes longer than twenty seconds a page: try it with the database's own "
           "client";
  return "see that a leader is there, or without a cluster a worker: millrace status";
}

}  // namespace

void JudgeSchedules(const Examination& seen, std::vector<Finding>& findings) {
  if (!seen.host.zones_trouble.empty()) {
    findings.push_back(
        {seen.has_schedules ? Severity::Error : Severity::Note, "host.zones", "this host",
         seen.host.zones_trouble,
         "without it a configuration with schedules of another zone than UTC is refused here"});
  }
  for (const ScheduleFacts& schedule : seen.schedules) {
    findings.push_back({Severity::Error, "schedule." + schedule.trouble, "schedule " + schedule.schedule,
                        schedule.what, RemedyOf(schedule)});
  }
}

}  // namespace millrace::engine::doctor
