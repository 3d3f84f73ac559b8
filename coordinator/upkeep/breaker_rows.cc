#include "coordinator/upkeep/breaker_rows.h"

#include <algorithm>

#include "framework/base/log.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {

void BreakerRows::Tell(const OpenBreakers& open) {
  const Status written = Write(open);
  if (!written && !troubled_) {
    LogWarning("status can't be told which breakers are open",
               {{"shard", shard_}, {"why", written.error().message}});
  }
  troubled_ = !written;
}

Status BreakerRows::Write(const OpenBreakers& open) {
  std::map<std::string, std::string> wanted;
  for (const auto& [type, why] : open.types) wanted[TrippedName(type, open.worker)] = why;
  std::set<std::string> names;
  for (const auto& [name, why] : wanted) names.insert(name);
  if (read_ && names == there_) return {};
  const auto operations = store_->OpenOperations();
  if (!read_) {
    BOOST_OUTCOME_TRY(pauses, operations->Pauses());
    for (const PauseRecord& pause : pauses) {
      const auto tripped = ReadTripped(pause.what);
      if (tripped && tripped->worker == open.worker) there_.insert(pause.what);
    }
    read_ = true;
  }
  for (const std::string& name : std::set<std::string>(there_)) {
    if (wanted.contains(name)) continue;
    BOOST_OUTCOME_TRYV(operations->SetPause(name, open.worker, false, {}));
    there_.erase(name);
  }
  for (const auto& [name, why] : wanted) {
    if (there_.contains(name)) continue;
    BOOST_OUTCOME_TRYV(operations->SetPause(name, open.worker, true, why));
    there_.insert(name);
  }
  return {};
}

bool BreakerRows::TidyUp() {
  const Status removed = RemoveLeft();
  if (!removed && !stuck_) {
    LogWarning("what dead workers told of their breakers can't be removed",
               {{"shard", shard_}, {"why", removed.error().message}});
  }
  stuck_ = !removed;
  // Others may have removed this worker's, while its incarnation was dead: the next Tell writes them anew.
  read_ = false;
  there_.clear();
  return !stuck_;
}

// Whoever tells of a breaker was registered before: so the rows are read first.
Status BreakerRows::RemoveLeft() {
  const auto operations = store_->OpenOperations();
  BOOST_OUTCOME_TRY(pauses, operations->Pauses());
  std::erase_if(pauses, [](const PauseRecord& pause) { return !ReadTripped(pause.what); });
  if (pauses.empty()) return {};
  BOOST_OUTCOME_TRY(peers, store_->OpenIncarnations()->Peers());
  for (const PauseRecord& pause : pauses) {
    const std::string worker = ReadTripped(pause.what)->worker;
    const bool lives = std::any_of(peers.begin(), peers.end(), [&worker](const PeerBeat& peer) {
      return peer.incarnation.worker == worker;
    });
    if (lives) continue;
    BOOST_OUTCOME_TRYV(operations->SetPause(pause.what, "millrace", false, {}));
  }
  return {};
}

}  // namespace millrace::engine
