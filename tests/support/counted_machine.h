// What a machine asks a cluster for.
#pragma once

#include <time.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "coordinator/coordination/machine.h"

namespace millrace::engine {

// Counts what the machine within asks for, and the processor time that it takes itself.
class CountedMachine final : public TreeMachine {
 public:
  explicit CountedMachine(TreeMachine& inner) : inner_(inner) {}

  void Event(const TreeEvent& event, BootTime now) override {
    const Spent spent(cpu);
    inner_.Event(event, now);
  }
  std::optional<TreeRequest> Next(BootTime now) override {
    const Spent spent(cpu);
    auto request = inner_.Next(now);
    if (!request) return request;
    ++(request->kind == TreeRequest::Kind::Write ? writes : reads);
    if (request->watch) watches.emplace(request->kind, request->path);
    for (const TreeWrite& write : request->writes) bytes_written += write.path.size() + write.data.size();
    return request;
  }
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override {
    bytes_read += reply.node.data.size();
    for (const std::string& child : reply.children) bytes_read += child.size();
    const Spent spent(cpu);
    inner_.Replied(request, reply, now);
  }
  BootTime WakeAt(BootTime now) const override { return inner_.WakeAt(now); }
  std::optional<TreeRequest> Farewell() override { return inner_.Farewell(); }

  int reads = 0;
  std::set<std::pair<TreeRequest::Kind, std::string>> watches;  // each that it has ever had
  int writes = 0;
  std::size_t bytes_read = 0;     // of data and of children's names
  std::size_t bytes_written = 0;  // of data and of paths
  double cpu = 0;                 // seconds

 private:
  // Adds what the thread has spent between its making and its end.
  class Spent {
   public:
    explicit Spent(double& sum) : sum_(sum), begun_(Seconds()) {}
    ~Spent() { sum_ += Seconds() - begun_; }
    Spent(const Spent&) = delete;

   private:
    static double Seconds() {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    }
    double& sum_;
    const double begun_;
  };

  TreeMachine& inner_;
};

}  // namespace millrace::engine
