// The flight recorders that dead processes left on this host, and what of them each store still has to be
// told.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/maintenance.h"
#include "framework/worker/flight_recorder.h"

namespace millrace::engine {

// Thread-safe. A recorder is kept locked until all of its lives are buried, then removed; one that speaks of
// a store that this process does not serve is left to others.
class DeadRecorders {
 public:
  DeadRecorders(std::string folder, std::string own_name);

  // The stores that this process serves from now on.
  void Serve(std::set<std::string> stores);

  // Looks for recorders whose owners have died since; what this store is to be told.
  std::vector<Burial> For(const std::string& store);
  void Done(const Burial& burial);

 private:
  struct Grave {
    std::unique_ptr<DeadRecorder> recorder;
    std::set<std::string> unburied;  // incarnations
  };
  void Collect() MILLRACE_REQUIRES(mutex_);
  bool IsServed(const DeadRecorder& recorder) const MILLRACE_REQUIRES(mutex_);

  const std::string folder_;
  const std::string own_name_;
  Mutex mutex_;
  std::set<std::string> stores_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::string> passed_over_ MILLRACE_GUARDED_BY(mutex_);  // our own, and others' business
  std::map<std::string, Grave> graves_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::string> reported_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
