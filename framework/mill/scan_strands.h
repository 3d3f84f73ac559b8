// The scan strands of one shard: one, or several by table or priority (`engine.scanners`), each a Scanner
// with a port of its own. framework/worker/README.md says what they share, and why that is safe.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/mill/scan.h"
#include "framework/policy/scan_deal.h"

namespace millrace::engine {

// Thread-safe, but for Run, which is a strand, and for Follow and Add, which are one thread's.
class ScanStrands {
 public:
  static constexpr std::size_t kMost = 64;

  ScanStrands(const Scanner::Parts& parts, ScanPort& first);

  std::size_t Count() const { return count_.load(std::memory_order_acquire); }
  // How many there should be, as of the last Follow. None that has begun ends before all do.
  std::size_t Wanted() const { return wanted_; }
  // One more, which is run from now on; its port outlives it. What is dealt to it comes with the next Follow.
  std::size_t Add(ScanPort& port);
  // The last one can't be run.
  void Drop() { count_.fetch_sub(1, std::memory_order_release); }
  Step<> Run(std::size_t strand) { return strands_[strand]->scanner.Run(); }

  // Deals anew, where something else is configured or the worker's own (`scope_changed`).
  void Follow(bool scope_changed);
  void Stop();
  void StopClaiming();
  void LookAgain();
  void Rung(const Ring& ring);
  void SetAttended(bool attended);
  // There is room for more.
  void Wake();
  // Of all of them; see Scanner.
  bool Idle() const;
  IdleSpan Idleness() const;
  std::set<std::string> LeftAside() const;
  std::set<std::string> HeldBack() const;
  bool Quiet() const;
  bool TakePausesChanged();
  ScanView View() const;
  // The newest whole due maps, each of other groups. Current: they are all there, and of all
  // slices that the worker has now.
  struct Maps {
    std::vector<std::shared_ptr<const DueMap>> maps;
    bool current = true;
  };
  Maps LatestMaps() const;

 private:
  struct Strand {
    Strand(const Scanner::Parts& parts, std::size_t number, ScanShared& shared, ScanPort& its_port)
        : port(its_port), part(parts.scope, number), scanner(parts, part, shared, its_port) {}
    ScanPort& port;
    ScanPart part;
    Scanner scanner;
  };
  struct Settings {
    ScannersConfig config;
    std::shared_ptr<const ScanRules> rounds;
    std::shared_ptr<const ScanOrder> order;
    std::size_t count = 0;
    bool operator==(const Settings&) const = default;
  };

  std::size_t WantedBy(const ScannersConfig& config, std::size_t tables) const;
  template <class Do>
  void ForEach(Do what) const {
    for (std::size_t i = 0; i < Count(); ++i) what(*strands_[i]);
  }

  const Scanner::Parts parts_;
  ScanShared shared_;
  std::array<std::unique_ptr<Strand>, kMost> strands_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> attended_{false};

  // Of whoever calls Follow.
  Settings settings_;
  TableDeal tables_;
  std::size_t wanted_ = 1;
};

}  // namespace millrace::engine
