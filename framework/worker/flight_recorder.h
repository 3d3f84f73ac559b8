// The flight recorder: a memory-mapped file that names the tasks whose handlers are running, and outlives the
// process. Whoever next gets its lock on that host knows what the dead process was running when it died.
//
// One file per worker process, DIR/<worker>.<hex>.flight, under flock for the process's life (a shared
// mapping survives SIGKILL; nothing is synced, since a reboot charges nobody). Made with posix_fallocate, so
// that a full disk is an error at the start and not a SIGBUS later. What it says ends an incarnation at once,
// so that it is believed only where nobody else can have written it: DIR is a trusted folder
// (framework/files/trust.h), the file is this user's or root's, it is the very file that it says it is (no
// copy of a living worker's), and it speaks of incarnations of the worker that it is named after.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What a recorder's slot says: this attempt's handler is running. `incarnation` is the life that claimed it.
struct RecordedRun {
  std::string incarnation;
  TaskKey key;
  std::uint32_t attempt = 0;
};

// Thread-safe.
class FlightRecorder {
 public:
  static Result<std::unique_ptr<FlightRecorder>> Create(const std::string& folder, const std::string& name);
  ~FlightRecorder();  // removes the file: an orderly end leaves nothing to charge
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Notes that the process registered under this incarnation in the store of this address.
  void NoteLife(const std::string& store, const std::string& incarnation);
  // That life has ended in good order: whoever finds this recorder need not serve its store. What still runs
  // of it is charged to nobody.
  void ForgetLife(const std::string& incarnation);
  // A stop was asked for: from now on nobody is charged for what is cut short.
  void NoteStopping();

  // A place for the caller's runs, one after another, until it is released. kNoSlot where thousands are
  // taken: what runs there is not noted.
  std::size_t Reserve();
  void Release(std::size_t slot);
  // Of a slot that is the caller's: notes a run until its end.
  void Begin(std::size_t slot, const std::string& incarnation, const TaskKey& key, std::uint32_t attempt);
  void End(std::size_t slot);

  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);

 private:
  struct Layout;
  FlightRecorder(std::string path, int file, Layout* map) : path_(std::move(path)), file_(file), map_(map) {}

  const std::string path_;
  const int file_;
  Layout* const map_;
  Mutex mutex_;
  std::vector<std::size_t> free_ MILLRACE_GUARDED_BY(mutex_);
  friend class DeadRecorder;
};

// The recorder of a process that is gone; its lock is held until destruction. Not thread-safe.
class DeadRecorder {
 public:
  // Those of the folder whose lock could be taken, but for the names in `passed_over`. Files that are no
  // recorders, are torn, or could be another's, are reported in `problems` and left alone.
  static std::vector<std::unique_ptr<DeadRecorder>> Collect(const std::string& folder,
                                                            const std::set<std::string>& passed_over,
                                                            std::vector<std::string>* problems);
  ~DeadRecorder();

  struct Life {
    std::string store;
    std::string incarnation;
  };
  const std::string& name() const { return name_; }
  const std::vector<Life>& lives() const { return lives_; }
  // What is to be charged; nothing after an orderly stop or a reboot.
  const std::vector<RecordedRun>& runs() const { return runs_; }
  // All is charged: removes the file.
  void Discard();

 private:
  DeadRecorder(std::string path, std::string name, int file)
      : path_(std::move(path)), name_(std::move(name)), file_(file) {}
  bool Read();

  const std::string path_;
  const std::string name_;
  const int file_;
  std::vector<Life> lives_;
  std::vector<RecordedRun> runs_;
};

}  // namespace millrace::engine
