// Finds the closed batches that have ended, and adds their callbacks: from what stands in the shards alone,
// so that any number of processes may do it, one after another or at once. What is looked at, and what is
// promised, stands in README.md, "When a batch has ended".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/store/store.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// The task that a callback's text describes: {"handler", "params", "priority", "in"}; with its key and
// nothing of the batch's. Invalid, with the member that is wrong.
Result<NewTask> ParseCallback(const std::string& text, const std::string& key);

// What a look has found.
struct BatchLook {
  std::size_t closed = 0;   // that have not ended, as far as the shards answer
  std::size_t ended = 0;    // by this look
  std::size_t pending = 0;  // with a callback, and soon to end: a row of it runs, or was announced but now
  bool cut = false;         // it was asked to stop, or has to look again at once
  bool unread = false;      // a shard did not answer: what stands there is not known
};

// One thread.
class BatchDecider {
 public:
  struct Parts {
    std::function<BootTime()> now;
    std::function<void(Micros)> rest;  // between two steps of a walk
    std::function<bool()> stop = [] { return false; };
  };
  explicit BatchDecider(Parts parts) : parts_(std::move(parts)) {}

  // `at_once`: also looks for rows of those whose counts say that it is too early for their end, and asks the
  // shards that rest.
  BatchLook Look(const StoresByShard& shards, bool at_once);

 private:
  using Name = std::pair<std::string, std::string>;  // home, name
  struct Witness {
    BatchPart part;
    BatchRow row;
  };
  struct Known {
    std::optional<BatchSums> sums;
    BootTime moved{};   // the sums, for the last time
    BootTime looked{};  // in the pools, for the last time
    BootTime again{};   // its home has refused its end: it rests until then
    std::optional<Witness> witness;
    std::string told;  // what was logged last of what holds it up
  };
  struct Candidate {
    Name name;
    BatchRecord record;
    BatchSums sums;
    bool open = false;   // a row of it was found
    bool early = false;  // fewer have ended than were announced: what is announced may be on its way
    // As ReadCallbacks found them.
    std::vector<NewTask> success = {};
    std::vector<NewTask> end = {};
  };
  // What is open in a shard.
  struct OpenShard {
    std::shared_ptr<Store> store;
    std::unique_ptr<BatchStore> batches;
    BootTime asked{};                      // for the last time
    BootTime again{};                      // away: it rests until then; none: it answered, or was not asked
    std::string told = {};                 // why its batches can't be read
    std::optional<BootTime> none_at = {};  // when it was asked last, where there was no closed one
  };

  BatchLook LookOnce(bool at_once);
  void Follow(const StoresByShard& shards);
  BatchStore* At(const std::string& shard);
  // The shard may be away by it.
  void NoteError(const std::string& shard, const Error& error);
  void TellUnread(const std::string& home, const std::string& why);
  std::vector<Candidate> Closed(bool at_once);
  bool ReadSums(std::vector<Candidate>& candidates);
  bool IsTime(Candidate& candidate, bool at_once);
  bool ReadCallbacks(Candidate& candidate);
  bool MayEndSoon(const Candidate& candidate);
  bool WitnessStands(Candidate& candidate);
  bool Walk(const BatchPart& part, std::vector<Candidate*>& candidates);
  Result<bool> Decide(const Candidate& candidate);
  void Tell(const Name& name, const std::string& what);

  const Parts parts_;
  std::map<std::string, OpenShard> open_;
  std::map<Name, Known> known_;
};

}  // namespace millrace::engine
