// How fast the SQLite store drains, beside a bare loop of the same statements, and what its due map costs.
// Rates are given by the wall clock, which counts the disk and whoever else uses the machine, and by CPU
// time.
//   sqlite_bench [TASKS [BATCH [DUE_MAP_ROWS]]]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <string>

#include "framework/store/sqlite/store.h"
#include "tests/bench/sqlite/bare_loop.h"

namespace millrace::engine {
namespace {

constexpr std::uint32_t kSlices = 64;

template <class T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "sqlite_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

template <class Body>
double Seconds(Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Rate {
  std::size_t done = 0;
  double wall = 0;
  double cpu = 0;
};

template <class Body>
Rate Measure(Body body) {
  Rate rate;
  const double cpu = CpuSeconds();
  rate.wall = Seconds([&] { rate.done = body(); });
  rate.cpu = CpuSeconds() - cpu;
  return rate;
}

void Print(const char* what, const Rate& rate) {
  const double done = static_cast<double>(rate.done);
  std::printf("%s: %.0f tasks/s, %.0f tasks a CPU second\n", what, done / rate.wall, done / rate.cpu);
}

// A shard in a folder of its own, filled with tasks that are due.
class Shard {
 public:
  explicit Shard(std::size_t tasks) : folder_(MakeFolder()), path_(folder_ + "/shard.db") {
    store_ = Must(sqlite::OpenStore({.kind = StoreUrl::Kind::Sqlite, .path = path_}, {}));
    Must(store_->OpenSchema()->Apply({.tables = 1, .slices = kSlices}));
    Must(store_->OpenIncarnations()->Register({.id = "w.1", .worker = "w"}));
    const auto operations = store_->OpenOperations();
    for (std::size_t left = tasks; left > 0;) {
      const std::size_t count = std::min(left, kMaxBatchRows);
      const std::vector<NewTask> batch(count, {.handler = "noop", .params = R"({"payment_id":123456})"});
      Must(operations->Submit("tasks", batch));
      left -= count;
    }
  }
  ~Shard() {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  Store& store() { return *store_; }
  const std::string& path() const { return path_; }

 private:
  static std::string MakeFolder() {
    std::string form = (std::filesystem::temp_directory_path() / "millrace_bench_XXXXXX").string();
    return mkdtemp(form.data()) == nullptr ? std::string() : form;
  }

  const std::string folder_;
  const std::string path_;
  std::unique_ptr<Store> store_;
};

struct Spent {
  double scan = 0;
  double claim = 0;
  double settle = 0;
};

std::size_t SettleAll(TaskStore& session, const std::vector<Task>& claimed) {
  std::vector<Settlement> ends;
  for (const Task& task : claimed)
    ends.push_back({.key = task.key, .attempt = task.attempt, .handler = task.handler});
  std::size_t settled = 0;
  for (const SettleVerdict verdict : Must(session.Settle("w.1", ends)).verdicts)
    settled += verdict == SettleVerdict::Settled;
  return settled;
}

// The due groups in turns, an eighth of a batch from each, as the mill does.
std::size_t DrainByStore(Store& store, std::size_t batch, Spent& spent) {
  const auto session = store.OpenTasks();
  const TableSlices all{.table = "tasks"};
  std::size_t done = 0;
  ClaimRequest request{.table = "tasks", .incarnation = "w.1"};
  const auto work = [&] {
    std::vector<Task> claimed;
    spent.claim += Seconds([&] { claimed = Must(session->Claim(request)); });
    spent.settle += Seconds([&] { done += SettleAll(*session, claimed); });
    request.ids.clear();
  };
  std::deque<ScanRequest> turns;
  for (const DueGroup& group : Must(session->Due(std::span(&all, 1))).groups)
    turns.push_back({.group = group, .with_bytes = true});
  while (!turns.empty()) {
    ScanRequest turn = std::move(turns.front());
    turns.pop_front();
    turn.limit = std::min(kRowsOfTurn, batch - request.ids.size());
    std::vector<ScanRow> page;
    spent.scan += Seconds([&] { page = Must(session->Scan(turn)); });
    for (const ScanRow& row : page) request.ids.push_back(row.id);
    if (page.size() == turn.limit) {
      turn.after = {page.back().run_at, page.back().id};
      turns.push_back(std::move(turn));
    }
    if (request.ids.size() == batch) work();
  }
  if (!request.ids.empty()) work();
  return done;
}

void Drain(std::size_t tasks, std::size_t batch) {
  Spent spent;
  Shard first(tasks);
  const Rate store = Measure([&] { return DrainByStore(first.store(), batch, spent); });
  Shard second(tasks);
  const Rate bare = Measure([&] { return DrainBare(second.path(), batch); });
  if (store.done != tasks || bare.done != tasks) {
    std::fprintf(stderr, "sqlite_bench: of %zu tasks the store drained %zu, the bare loop %zu\n", tasks,
                 store.done, bare.done);
    std::exit(1);
  }
  Print("store", store);
  std::printf("  of which scan %.3f s, claim %.3f s, settle %.3f s\n", spent.scan, spent.claim, spent.settle);
  Print("bare loop", bare);
  std::printf("ratio: %.2f by the wall clock, %.2f by CPU time\n", bare.wall / store.wall,
              bare.cpu / store.cpu);
}

void MeasureDueMap(std::size_t rows) {
  Shard shard(rows);
  const auto session = shard.store().OpenTasks();
  const TableSlices all{.table = "tasks"};
  double best = 1e9;
  std::size_t groups = 0;
  for (int i = 0; i < 20; ++i) {
    best = std::min(best, Seconds([&] { groups = Must(session->Due(std::span(&all, 1))).groups.size(); }));
  }
  std::printf("due map: %.2f ms over %zu rows in %zu groups (best of 20)\n", best * 1e3, rows, groups);
}

}  // namespace
}  // namespace millrace::engine

int main(int argc, char** argv) {
  const auto number = [&](int at, std::size_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  millrace::engine::Drain(number(1, 200'000), number(2, millrace::engine::kMaxBatchRows));
  millrace::engine::MeasureDueMap(number(3, 1'000'000));
  return 0;
}
