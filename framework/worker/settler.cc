#include "framework/worker/settler.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(100);
constexpr Micros kFirstPause = std::chrono::milliseconds(20);
constexpr Micros kLongestPause = std::chrono::seconds(1);
constexpr Micros kBusyPause = std::chrono::milliseconds(200);
constexpr const char* kNotStored = "its outcome could not be stored, and it may have taken effect";

std::vector<Settlement> SettlementsOf(const std::vector<Landing>& batch) {
  std::vector<Settlement> settlements;
  settlements.reserve(batch.size());
  for (const Landing& landing : batch) settlements.push_back(landing.settlement);
  return settlements;
}

const std::string& LifeOf(const Landing& landing) { return landing.flight->standing->incarnation(); }

}  // namespace

Settler::Settler(std::unique_ptr<TaskStore> store, const LiveEngine& engine, Known known)
    : store_(std::move(store)), engine_(engine), known_(std::move(known)) {}

Status Settler::Start() {
  return thread_.Start("settle", [this] { Run(); });
}

void Settler::RequestStop() {
  stopping_.store(true);
  wake_.Notify();
}

void Settler::Stop() {
  RequestStop();
  thread_.Join();
  busy_.clear();
  while (!queue_.Take(kMaxBatchRows, Micros(0)).empty()) continue;
}

void Settler::Land(Landing landing) {
  if (!stopping_.load()) queue_.Push(std::move(landing));
}

void Settler::Run() {
  while (!stopping_.load()) {
    const std::size_t most = engine_.Get().batch;
    std::vector<Landing> taken = DueAgain(most);
    std::vector<Landing> fresh = queue_.Take(most - taken.size(), kTick);
    std::move(fresh.begin(), fresh.end(), std::back_inserter(taken));
    std::map<std::string, std::vector<Landing>> by_life;
    for (Landing& landing : taken) by_life[LifeOf(landing)].push_back(std::move(landing));
    for (auto& [life, batch] : by_life) SettleAll(std::move(batch));
  }
}

void Settler::SetAside(Landing landing) {
  if (busy_.empty()) busy_due_ = BootClock::now() + kBusyPause;
  busy_.push_back(std::move(landing));
}

std::vector<Landing> Settler::DueAgain(std::size_t most) {
  std::vector<Landing> due;
  if (busy_.empty() || BootClock::now() < busy_due_) return due;
  const auto end = busy_.begin() + static_cast<std::ptrdiff_t>(std::min(busy_.size(), most));
  std::move(busy_.begin(), end, std::back_inserter(due));
  busy_.erase(busy_.begin(), end);
  return due;
}

// Until every outcome is known, or the worker ends; locked rows are set aside. An outage of the database is
// waited out here.
void Settler::SettleAll(std::vector<Landing> batch) {
  Micros delay = kFirstPause;
  while (!batch.empty() && !stopping_.load()) {
    std::vector<Landing> plain;
    std::vector<Landing> to_verify;
    for (Landing& landing : batch) (landing.verify ? to_verify : plain).push_back(std::move(landing));
    std::vector<Landing> open = Verified(std::move(to_verify));
    std::move(open.begin(), open.end(), std::back_inserter(plain));
    if (std::any_of(plain.begin(), plain.end(), [](const Landing& l) { return l.verify; })) {
      batch = std::move(plain);  // nobody could say: the database is away
    } else {
      batch = SettleOnce(std::move(plain));
    }
    if (batch.empty()) {
      reported_ = false;
      return;
    }
    wake_.WaitFor(delay);
    delay = std::min(delay * 2, kLongestPause);
  }
}

// Asks which attempts whose settle has an unknown outcome still run; the others have ended.
std::vector<Landing> Settler::Verified(std::vector<Landing> batch) {
  if (batch.empty()) return batch;
  const auto running = store_->StillRunning(LifeOf(batch.front()), SettlementsOf(batch));
  if (!running) return batch;
  std::vector<Landing> open;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if ((*running)[i]) {
      batch[i].verify = false;
      open.push_back(std::move(batch[i]));
    } else {
      if (batch[i].committed) batch[i].settlement = std::move(*batch[i].committed);
      known_(batch[i], SettleVerdict::Settled);
    }
  }
  return open;
}

std::vector<Landing> Settler::SettleOnce(std::vector<Landing> batch) {
  if (batch.empty()) return batch;
  const auto report = store_->Settle(LifeOf(batch.front()), SettlementsOf(batch));
  if (!report) {
    if (!reported_) {
      LogWarning("settling is held up; it will be tried until it succeeds",
                 {{"tasks", batch.size()}, {"error", report.error().message}});
      reported_ = true;
    }
    if (report.error().code == ErrorCode::Unknown) {
      for (Landing& landing : batch) landing.verify = true;
    }
    return batch;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (report->verdicts[i] == SettleVerdict::Broken) {
      MendBroken(std::move(batch[i]), report->errors[i]);
    } else if (report->verdicts[i] == SettleVerdict::Busy) {
      SetAside(std::move(batch[i]));
    } else {
      known_(batch[i], report->verdicts[i]);
    }
  }
  return {};
}

// The database refuses what the settle would write (a text, mostly): the task fails with a text that it
// takes. Where it refuses even that, somebody has to mend the table: the task is tried again until then.
void Settler::MendBroken(Landing landing, const std::string& error) {
  Settlement& settlement = landing.settlement;
  if (settlement.text == kNotStored) {
    SetAside(std::move(landing));
    return;
  }
  LogError("the outcome of a task could not be stored",
           {{"task", ToString(TaskName{landing.flight->shard, landing.flight->task.key})}, {"error", error}});
  settlement.to = Settlement::To::Failed;
  settlement.failed_attempt = true;
  settlement.run_at.reset();
  settlement.delay.reset();
  settlement.text = kNotStored;
  settlement.error_class = "bad_outcome";
  const auto report = store_->Settle(LifeOf(landing), std::span(&settlement, 1));
  const SettleVerdict verdict = report ? report->verdicts[0] : SettleVerdict::Busy;
  if (verdict == SettleVerdict::Settled || verdict == SettleVerdict::Refused) {
    known_(landing, verdict);
    return;
  }
  landing.verify = !report && report.error().code == ErrorCode::Unknown;
  SetAside(std::move(landing));
}

}  // namespace millrace::engine
