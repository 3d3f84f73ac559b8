// Incarnations and their beats: alive until marked dead. No clock of the database or of the wall is used.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

struct Incarnation {
  std::string id;      // <worker>.<12 hex digits>, at most 64 bytes of ASCII
  std::string worker;  // stable name of the worker
  std::string host;
  std::int64_t pid = 0;
  Micros lease{};  // the time its beat may stand still before others may mark it dead
  std::string
      slices;  // load-balance numbers it owns without a coordinator: "0-31,40"; empty: all, or a plan's
};

struct PeerBeat {
  Incarnation incarnation;
  std::optional<std::uint64_t> beat;  // none: somebody has deleted it, and it will never move again
};

// A run of a handler that a flight recorder shows as cut short by its process's death.
struct Crash {
  TaskKey key;
  std::uint32_t attempt = 0;
};

class IncarnationStore {
 public:
  virtual ~IncarnationStore() = default;

  // Conflict if the id exists.
  virtual Status Register(const Incarnation& incarnation) = 0;
  // Beats once. False: its beat or its row is gone, or the row says dead: this life is over, as a claim under
  // it would find too.
  virtual Result<bool> Renew(const std::string& id) = 0;
  // Every incarnation whose row says that it is alive, the caller's too.
  virtual Result<std::vector<PeerBeat>> Peers() = 0;
  // One transaction: DELETE the beat if it still shows `seen_beat`, or none if it was seen missing and still
  // is; then dead=1. False: it has moved or is gone, or somebody else has marked it.
  virtual Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) = 0;
  // Whatever its beat shows: for an orderly end, for a predecessor whose flight recorder's lock was taken, or
  // for what is left of a life of one's own of which somebody has ended a half. False if it was dead already
  // or never existed.
  virtual Result<bool> Retire(const std::string& id) = 0;
  // Retire, of a predecessor whose process has died; whoever looks for lost workers hears of it, as of one
  // that was marked dead.
  virtual Result<bool> Bury(const std::string& id) { return Retire(id); }
  // crashes+1, and its millrace_attempts row, for each of these attempts of `id` that is not noted yet; one
  // transaction. Charging twice changes nothing. Returns how many were charged now.
  virtual Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) = 0;
};

}  // namespace millrace::engine
