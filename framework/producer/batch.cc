#include "framework/producer/batch.h"

#include "framework/task/slice_choice.h"

namespace millrace::producer {
namespace {

// Fewer are spread in any case.
constexpr std::size_t kFew = 16;
constexpr Duration kLongestDelay = std::chrono::days(36'500);

engine::Result<engine::NewTask> ToStore(const NewTask& task) {
  engine::NewTask out{.handler = task.handler,
                      .params = task.params,
                      .biz_key = task.key,
                      .batch = task.batch,
                      .run_at = task.run_at,
                      .held = task.held};
  if (task.priority) {
    if (*task.priority < 0 || *task.priority > 9) {
      return engine::Fail(engine::ErrorCode::Invalid,
                          "priority " + std::to_string(*task.priority) + " is not in 0 (most urgent) … 9");
    }
    out.priority = static_cast<std::uint32_t>(*task.priority);
  }
  if (task.delay != Duration::zero()) {
    if (task.run_at) {
      return engine::Fail(engine::ErrorCode::Invalid,
                          "a task has either a run_at or a delay: set one of them");
    }
    if (task.delay < Duration::zero() || task.delay > kLongestDelay) {
      return engine::Fail(engine::ErrorCode::Invalid, "the delay is not in 0 … 36,500 days");
    }
    out.delay = task.delay;
  }
  out.expires_at = task.expires_at;
  if (task.expires_in != Duration::zero()) {
    if (task.expires_in < Duration::zero() || task.expires_in > kLongestDelay) {
      return engine::Fail(engine::ErrorCode::Invalid, "expires_in is not in 0 … 36,500 days");
    }
    out.expires_in = task.expires_in;
  }
  return out;
}

}  // namespace

engine::Result<engine::TableName> ParseTable(const std::string& name, engine::TableName otherwise) {
  if (name.empty()) return otherwise;
  if (const auto table = engine::ParseTableName(name)) return *table;
  return engine::Fail(engine::ErrorCode::Invalid,
                      "'" + engine::Shorten(name, 80) +
                          "' is not the name of a task table: lower-case letters, "
                          "digits and '_', beginning with a letter, at most 48");
}

engine::Result<std::vector<engine::NewTask>> ToStore(std::span<const NewTask> tasks) {
  static_assert(kMostTasks == engine::kMaxSubmitRows);
  if (tasks.size() > kMostTasks) {
    return engine::Fail(engine::ErrorCode::Invalid, std::to_string(tasks.size()) +
                                                        " tasks in one call; the limit is " +
                                                        std::to_string(kMostTasks) + ": use several");
  }
  std::vector<engine::NewTask> out;
  out.reserve(tasks.size());
  for (const NewTask& task : tasks) {
    auto one = ToStore(task);
    if (!one) {
      engine::Error error = one.error();
      if (tasks.size() > 1)
        error.message = "task " + std::to_string(out.size() + 1) + " of the batch: " + error.message;
      return engine::Fail(std::move(error));
    }
    out.push_back(std::move(*one));
  }
  return out;
}

bool ChoosesSlices(std::span<const NewTask> tasks, Slices slices) {
  if (tasks.size() >= (slices == Slices::Automatic ? kFew : 2)) return true;
  for (const NewTask& task : tasks) {
    if (!task.slice_key.empty()) return true;
  }
  return false;
}

// Each run has a slice of its own as long as there are any.
void ChooseSlices(std::span<const NewTask> tasks, Slices slices, std::uint32_t count, engine::Random random,
                  std::span<engine::NewTask> placed) {
  constexpr std::uint64_t kSpread = 1;
  constexpr std::uint64_t kLongest = 1'000'000'000;
  const std::uint64_t rows = slices == Slices::Spread ? kSpread
                             : slices == Slices::Runs ? kLongest
                                                      : tasks.size();
  engine::SliceRuns runs(count, rows, std::move(random));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    placed[i].slice =
        tasks[i].slice_key.empty() ? runs.Next() : engine::SliceOfKey(tasks[i].slice_key, count);
  }
}

Error FromStore(const engine::Error& error) {
  switch (error.code) {
    case engine::ErrorCode::Conflict:
      return {ErrorKind::Conflict, error.message};
    case engine::ErrorCode::Unavailable:
      return {ErrorKind::Unavailable, error.message};
    case engine::ErrorCode::Unknown:
      return {ErrorKind::Unknown, error.message};
    case engine::ErrorCode::NotFound:
    case engine::ErrorCode::Invalid:
    case engine::ErrorCode::Denied:
      return {ErrorKind::Invalid, error.message};
    case engine::ErrorCode::Cancelled:
    case engine::ErrorCode::Internal:
      break;
  }
  return {ErrorKind::Failed, error.message};
}

Report FromStore(engine::SubmitReport report) {
  Report out{.added = report.added, .tasks = {}};
  out.tasks.reserve(report.ids.size());
  for (std::size_t i = 0; i < report.ids.size(); ++i)
    out.tasks.push_back({report.ids[i], std::move(report.duplicates[i])});
  return out;
}

Result<SubmittedTask> Single(Result<Report> report) {
  if (!report) return report.error();
  return std::move(report->tasks.at(0));
}

}  // namespace millrace::producer
