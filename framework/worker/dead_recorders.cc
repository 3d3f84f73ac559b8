#include "framework/worker/dead_recorders.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {

DeadRecorders::DeadRecorders(std::string folder, std::string own_name)
    : folder_(std::move(folder)), own_name_(std::move(own_name)), passed_over_{own_name_} {}

// What was others' business may be ours now, and the other way round: a recorder let go is free for others.
void DeadRecorders::Serve(std::set<std::string> stores) {
  MutexLock lock(mutex_);
  if (stores == stores_) return;
  stores_ = std::move(stores);
  passed_over_ = {own_name_};
  std::erase_if(graves_, [this](const auto& grave)
                             MILLRACE_REQUIRES(mutex_) { return !IsServed(*grave.second.recorder); });
}

bool DeadRecorders::IsServed(const DeadRecorder& recorder) const {
  return std::all_of(recorder.lives().begin(), recorder.lives().end(),
                     [this](const DeadRecorder::Life& life)
                         MILLRACE_REQUIRES(mutex_) { return stores_.contains(life.store); });
}

void DeadRecorders::Collect() {
  std::vector<std::string> problems;
  for (auto& recorder : DeadRecorder::Collect(folder_, passed_over_, &problems)) {
    const auto& lives = recorder->lives();
    if (lives.empty()) {
      recorder->Discard();
      continue;
    }
    if (!IsServed(*recorder)) {
      passed_over_.insert(recorder->name());
      continue;
    }
    Grave grave;
    for (const DeadRecorder::Life& life : lives) grave.unburied.insert(life.incarnation);
    const std::string name = recorder->name();
    grave.recorder = std::move(recorder);
    graves_.emplace(name, std::move(grave));
  }
  for (const std::string& problem : problems) {
    if (reported_.insert(problem).second) LogWarning("flight recorder left alone", {{"problem", problem}});
  }
}

std::vector<Burial> DeadRecorders::For(const std::string& store) {
  MutexLock lock(mutex_);
  Collect();
  std::vector<Burial> burials;
  for (const auto& [name, grave] : graves_) {
    for (const DeadRecorder::Life& life : grave.recorder->lives()) {
      if (life.store != store || !grave.unburied.contains(life.incarnation)) continue;
      Burial burial{name, life.incarnation, {}};
      for (const RecordedRun& run : grave.recorder->runs()) {
        if (run.incarnation == life.incarnation) burial.crashes.push_back({run.key, run.attempt});
      }
      burials.push_back(std::move(burial));
    }
  }
  return burials;
}

void DeadRecorders::Done(const Burial& burial) {
  MutexLock lock(mutex_);
  const auto grave = graves_.find(burial.recorder);
  if (grave == graves_.end()) return;
  grave->second.unburied.erase(burial.incarnation);
  if (!grave->second.unburied.empty()) return;
  grave->second.recorder->Discard();
  graves_.erase(grave);
}

}  // namespace millrace::engine
