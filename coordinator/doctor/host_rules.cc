#include "coordinator/doctor/findings.h"
#include "framework/base/time_text.h"

namespace millrace::engine::doctor {
namespace {

using Findings = std::vector<Finding>;
constexpr const char* kThisHost = "this host";

std::string Megabytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; }

void JudgeSpace(const SpaceFacts& space, const Bounds& bounds, Findings& findings) {
  const std::string place = space.use + " " + space.folder;
  if (!space.problem.empty()) {
    findings.push_back({Severity::Error, "host.folder", kThisHost, place + " " + space.problem,
                        "name another, or give this user the right to it"});
    return;
  }
  const bool none = space.free_bytes < bounds.no_space || (space.counts_files && space.free_files < 100);
  if (none || space.free_bytes < bounds.little_space) {
    findings.push_back(
        {none ? Severity::Error : Severity::Warning, "host.space", kThisHost,
         place + " has " + Megabytes(space.free_bytes) + " free" +
             (space.counts_files ? " and room for " + std::to_string(space.free_files) + " files" : ""),
         "make room: without it a worker can't start, and a store of SQLite takes no task"});
  }
  if (space.network && space.use == "the store's folder") {
    findings.push_back({Severity::Error, "host.network", kThisHost,
                        place + " lies on a network file system, on which SQLite's locks do not hold",
                        "keep the file on a local disk, or use a server"});
  }
}

}  // namespace

void JudgeHost(const HostFacts& host, const Bounds& bounds, Findings& findings) {
  if (!host.plugin_trouble.empty()) {
    findings.push_back({Severity::Error, "host.plugins", kThisHost, host.plugin_trouble,
                        "name the folder of the plugins with --plugins"});
  }
  for (const PluginFacts& plugin : host.plugins) {
    if (plugin.problem.empty()) continue;
    findings.push_back({Severity::Error, "host.plugin", kThisHost, plugin.problem,
                        "a worker runs without it, and what needs it waits: mend it, or take it out of " +
                            host.plugin_folder});
  }
  for (const SecretFacts& secret : host.secrets) {
    if (secret.problem.empty()) continue;
    findings.push_back({Severity::Error, "host.secret", kThisHost,
                        secret.use + ": the file " + secret.file + " " + secret.problem,
                        "chmod 600 it, and chown it to the user that runs millrace"});
  }
  for (const SpaceFacts& space : host.spaces) JudgeSpace(space, bounds, findings);
  for (const FileFacts& file : host.files) {
    if (file.others_write) {
      findings.push_back({Severity::Warning, "host.store_mode", kThisHost,
                          "the store " + file.file + " can be written by every user of this host",
                          "chmod o-w it"});
    }
    if (!file.wal) {
      findings.push_back(
          {Severity::Warning, "host.journal", kThisHost,
           "the store " + file.file + " is not in WAL mode: readers and the worker hold each other up",
           "a worker sets it when it opens the file; see who changes it back"});
    }
  }
  const Micros step = host.clock_step < Micros(0) ? -host.clock_step : host.clock_step;
  if (step >= bounds.clock_step) {
    findings.push_back(
        {Severity::Warning, "host.clock_step", kThisHost,
         "the clock was stepped by " + FormatDuration(std::chrono::floor<std::chrono::milliseconds>(step)) +
             " while it was watched",
         "let a time server slew it (chrony's makestep at the start alone); leases stand steps, due "
         "times and logs do not"});
  }
}

}  // namespace millrace::engine::doctor
