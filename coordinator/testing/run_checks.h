// What runs in a simulated cluster at each moment, held against what its task types may: by the runs
// themselves and the rows, and not by what the workers know of their permits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "coordinator/testing/journal.h"
#include "coordinator/testing/modelled_process.h"
#include "framework/config/policy_config.h"

namespace millrace::engine {

// Not thread-safe.
class RunChecks {
 public:
  // One attempt, from its handler's first line.
  struct Run {
    const ModelledProcess* process = nullptr;
    std::size_t shard = 0;
    TaskKey task;
    std::uint32_t attempt = 0;
    std::string type;
    std::string life;        // under which it was claimed
    std::string home;        // the life that holds its permit; empty: it has none
    ThreadName thread{};     // that runs it
    BootTime handed{};       // to the run stage
    LimitConfig limit = {};  // of its type, as its worker knows it
  };

  RunChecks(const Timeline& timeline, const ModelledEnsemble& ensemble,
            const std::deque<ModelledDatabase>& databases, Journal& journal)
      : timeline_(timeline), ensemble_(ensemble), databases_(databases), journal_(journal) {}

  // Nothing begins under a pause that its worker could have heard of. No task runs beside itself, but for a
  // life that was marked dead, a handler that was given up, and what a failover has forgotten. Never more at
  // once than the limit says, in the whole cluster, nor more in ten seconds than its rate lets start. What is
  // documented to overlap is counted apart: a process that was stopped, before its watch has looked at the
  // clock again; a handler that does not heed its stop, or whose thread is held up beyond the end of the life
  // that holds its permit; what a failover of a database has forgotten.
  std::uint64_t Began(Run run);
  void Returned(std::uint64_t run);
  // It has ended, and its handler has not.
  void GivenUp(std::uint64_t run);
  void Died(const ModelledProcess& process);
  // What the configuration says from now on; what it said before may be gone by until all have heard.
  void LimitIs(const std::string& type, const LimitConfig& limit);
  // Somebody has deleted what the leader has given out.
  void SharesForgotten() { forgotten_ = timeline_.Now(); }

  // Runs that began beside as many as may run, of which some are counted apart.
  std::size_t Overlaps() const { return overlaps_; }
  // Runs of types that are limited to so many at once.
  std::size_t Limited() const { return limited_; }
  // Runs of types whose starts have a rate.
  std::size_t Paced() const { return paced_; }

 private:
  struct Entry {
    Run run;
    bool returned = false;
    bool given_up = false;
  };

  void CheckPauses(const Run& mine);
  void CheckAlone(const Run& mine);
  void CheckAtOnce(const Run& mine);
  void CheckRate(const Run& mine);
  // Its handler runs, or its settle is not known: nobody else may have its permit.
  bool Holds(const Entry& entry) const;
  bool IsExcused(const Entry& entry) const;
  // Of what its worker knows, and all that may have been gone by since then.
  LimitConfig Laxest(const std::string& type, BootTime from, const LimitConfig& known) const;
  bool Alive(const std::string& home) const;
  bool FailedOver(const Run& run) const;
  bool LostSharesSince(BootTime from) const;

  const Timeline& timeline_;
  const ModelledEnsemble& ensemble_;
  const std::deque<ModelledDatabase>& databases_;
  Journal& journal_;
  std::map<std::uint64_t, Entry> runs_;
  std::uint64_t last_ = 0;
  std::size_t overlaps_ = 0;
  std::size_t limited_ = 0;
  BootTime forgotten_{};
  struct Limit {
    LimitConfig limit;
    BootTime until = BootTime::max();
  };
  std::map<std::string, std::vector<Limit>> limits_;    // by task type; the last is in force
  std::map<std::string, std::deque<BootTime>> starts_;  // by task type, where these have a rate
  std::size_t paced_ = 0;
};

}  // namespace millrace::engine
