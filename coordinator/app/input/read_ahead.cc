#include "coordinator/app/input/input_rows.h"

#include <deque>
#include <exception>

#include "framework/base/mutex.h"
#include "framework/threads/thread.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kRowsOfChunk = 500;
constexpr std::size_t kMostChunks = 8;
constexpr Micros kLookAgain = std::chrono::seconds(1);
constexpr Micros kMoment = std::chrono::milliseconds(200);

using Chunk = std::vector<InputRow>;

// What both threads have. The source is the reader's alone.
struct Ahead {
  std::unique_ptr<InputRows> source;

  Mutex mutex;
  CondVar changed;
  std::deque<Chunk> chunks MILLRACE_GUARDED_BY(mutex);
  std::exception_ptr thrown MILLRACE_GUARDED_BY(mutex);
  bool ended MILLRACE_GUARDED_BY(mutex) = false;
  bool left MILLRACE_GUARDED_BY(mutex) = false;  // nobody takes them any more

  // Empty at the end.
  Chunk ReadChunk() {
    Chunk chunk;
    while (chunk.size() < kRowsOfChunk) {
      auto row = source->Next();
      if (!row) break;
      chunk.push_back(std::move(*row));
    }
    return chunk;
  }

  // False where there is nothing more to do.
  bool Push(Chunk chunk) {
    MutexLock lock(mutex);
    while (chunks.size() == kMostChunks && !left) changed.WaitFor(mutex, kLookAgain);
    if (left || chunk.empty()) return false;
    chunks.push_back(std::move(chunk));
    changed.NotifyAll();
    return true;
  }

  void Run() {
    std::exception_ptr caught;
    try {
      while (Push(ReadChunk())) {
      }
    } catch (...) {
      caught = std::current_exception();
    }
    MutexLock lock(mutex);
    thrown = caught;
    ended = true;
    changed.NotifyAll();
  }

  // The next chunk; empty at the end, and where it is stopped.
  Chunk Take(const std::function<bool()>& stop) {
    MutexLock lock(mutex);
    while (chunks.empty() && !ended && !stop()) changed.WaitFor(mutex, kMoment);
    if (chunks.empty()) {
      if (thrown) std::rethrow_exception(thrown);
      return {};
    }
    Chunk chunk = std::move(chunks.front());
    chunks.pop_front();
    changed.NotifyAll();
    return chunk;
  }

  // Whether the reader has ended within a moment.
  bool Leave() {
    const auto deadline = std::chrono::steady_clock::now() + kMoment;
    MutexLock lock(mutex);
    left = true;
    changed.NotifyAll();
    while (!ended && std::chrono::steady_clock::now() < deadline) changed.WaitFor(mutex, kMoment);
    return ended;
  }
};

class RowsAhead final : public InputRows {
 public:
  RowsAhead(std::unique_ptr<InputRows> source, std::function<bool()> stop)
      : stop_(std::move(stop)), ahead_(std::make_shared<Ahead>()) {
    ahead_->source = std::move(source);
  }
  // A reader that waits for input keeps what it uses, and ends with the process.
  ~RowsAhead() override {
    if (reader_.Started() && !ahead_->Leave()) reader_.Abandon();
  }

  Status Start() {
    return reader_.Start("read-ahead", [ahead = ahead_] { ahead->Run(); });
  }

  std::optional<InputRow> Next() override {
    if (next_ == chunk_.size()) {
      chunk_ = ahead_->Take(stop_);
      next_ = 0;
      if (chunk_.empty()) return std::nullopt;
    }
    return std::move(chunk_[next_++]);
  }

 private:
  const std::function<bool()> stop_;
  const std::shared_ptr<Ahead> ahead_;
  Thread reader_;
  Chunk chunk_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<InputRows>> ReadAhead(std::unique_ptr<InputRows> source, std::function<bool()> stop) {
  auto rows = std::make_unique<RowsAhead>(std::move(source), std::move(stop));
  BOOST_OUTCOME_TRYV(rows->Start());
  return std::unique_ptr<InputRows>(std::move(rows));
}

}  // namespace millrace::engine
