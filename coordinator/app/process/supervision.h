// How a process that works is seen while it works: by probes over HTTP, and by the service manager.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "coordinator/app/process/web_server.h"
#include "framework/base/mutex.h"
#include "framework/config/config.h"

namespace millrace::engine {

// The service manager that started this process (systemd with Type=notify), told by its datagrams. Nothing
// happens where none asks for it (NOTIFY_SOCKET, WATCHDOG_USEC). One thread.
class ServiceManager {
 public:
  ServiceManager();

  void TellReady();
  void TellStopping();
  void TellStatus(const std::string& what);
  void FeedWatchdog();
  // How long the process may stand still before it is killed; 0: nobody watches.
  Micros watchdog() const { return watchdog_; }

 private:
  Micros watchdog_{0};
};

// One thread, the one that waits for the end of the process, where nothing else is said.
class Supervision {
 public:
  // Answers from now on where the flag or, without it, the configuration says. Errors: see WebServer.
  static Result<std::unique_ptr<Supervision>> Begin(const HttpFlags& flags, const EngineConfig& engine);

  // What is seen from now on until the guard goes.
  std::unique_ptr<ProcessView::Shown> Show(ProcessView::Facts facts, ProcessView::Metrics metrics);
  // Twice a second: follows `engine.http`, and tries it again every few seconds while it can't be
  // listened on and nothing is served; says when the process is ready, and feeds the watchdog unless a thread
  // stands still. (Only the database may keep a thread waiting: see Worker::StandsStill.)
  void Update(const EngineConfig& engine, BootTime now = BootClock::now());
  // What came of `engine.http`: nullopt where it has not been tried yet, why it is not in force, or nothing.
  // Thread-safe.
  std::optional<std::string> Listens(const EngineConfig& engine) const;
  // It is about to end. May be repeated.
  void Stopping();

 private:
  explicit Supervision(const HttpFlags& flags) : fixed_address_(!flags.http.empty()) {}
  void Follow(const std::string& address, BootTime now);
  void Feed(BootTime now);
  void TellStatus(const ProcessFacts& facts, BootTime now);

  const bool fixed_address_;
  ProcessView view_;
  std::unique_ptr<WebServer> web_;
  mutable Mutex mutex_;
  std::string address_ MILLRACE_GUARDED_BY(mutex_);  // of the configuration, as it was last tried
  std::string refused_ MILLRACE_GUARDED_BY(mutex_);  // why it is not in force; empty: it is
  BootTime listen_again_{};
  bool may_come_ = false;  // it may be to be had later
  ServiceManager manager_;
  bool ready_ = false;
  bool stopping_ = false;
  std::optional<BootTime> fed_;
  std::string starved_by_;  // the thread that keeps the watchdog from being fed
  std::optional<BootTime> told_;
  WorkerTotals told_totals_;
};

}  // namespace millrace::engine
