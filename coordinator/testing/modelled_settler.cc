#include "coordinator/testing/modelled_settler.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr ThreadName kThread = ThreadName::Settle;
constexpr Micros kTick = std::chrono::milliseconds(5);
constexpr Micros kFirstPause = std::chrono::milliseconds(20);
constexpr Micros kLongestPause = std::chrono::seconds(1);

}  // namespace

void ModelledSettler::Land(ModelledLanding landing) {
  queue_.push_back(std::move(landing));
  if (woken_ || !batch_.empty()) return;
  woken_ = true;
  parts_.After(kThread, kTick, [this] { TakeBatch(); });
}

void ModelledSettler::TakeBatch() {
  woken_ = false;
  pause_ = kFirstPause;
  while (!queue_.empty() && (batch_.empty() || queue_.front().incarnation == batch_.front().incarnation)) {
    batch_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (!batch_.empty()) Verify();
}

std::vector<Settlement> ModelledSettler::Settlements(bool verify) const {
  std::vector<Settlement> settlements;
  for (const ModelledLanding& landing : batch_) {
    if (landing.verify == verify) settlements.push_back(landing.settlement);
  }
  return settlements;
}

void ModelledSettler::Known(const ModelledLanding& landing) {
  parts_.state.in_flight.Leave(landing.settlement.key);
}

// Attempts whose settle has an unknown outcome: does each still run?
void ModelledSettler::Verify() {
  const std::vector<Settlement> asked = Settlements(true);
  if (asked.empty()) {
    Settle();
    return;
  }
  using Running = Result<std::vector<bool>>;
  parts_.Read<Running>(
      kThread,
      [asked, life = batch_.front().incarnation](CheckedShard& shard) {
        return shard.shard().StillRunning(life, asked);
      },
      [this](const Running& running) {
        if (!running) {
          TryAgain();
          return;
        }
        std::size_t answer = 0;
        std::vector<ModelledLanding> open;
        for (ModelledLanding& landing : batch_) {
          if (landing.verify && !(*running)[answer++]) {
            Known(landing);
            continue;
          }
          landing.verify = false;
          open.push_back(std::move(landing));
        }
        batch_ = std::move(open);
        if (batch_.empty()) {
          TakeBatch();
        } else {
          Settle();
        }
      });
}

void ModelledSettler::Settle() {
  parts_.Write<Result<SettleReport>>(
      kThread,
      [batch = Settlements(false), life = batch_.front().incarnation](CheckedShard& shard) {
        return shard.Settle(life, batch);
      },
      [this](const Result<SettleReport>& report) {
        if (!report) {
          if (report.error().code == ErrorCode::Unknown) {
            for (ModelledLanding& landing : batch_) landing.verify = true;
          }
          TryAgain();
          return;
        }
        for (const ModelledLanding& landing : batch_) Known(landing);
        batch_.clear();
        TakeBatch();
      });
}

void ModelledSettler::TryAgain() {
  parts_.After(kThread, pause_, [this] { Verify(); });
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace millrace::engine
