// Runs one task, one slice's move and one configuration change through the product, and notes every function
// of ours that is entered and left on the way: for ways_test.py, which tells what files they stand in.
//   millrace_ways PLUGINS FOLDER TRACE
// Two processes of a cluster in one, on a tree without a network: w1 leads, and w2 has a real worker on a
// SQLite file in FOLDER. The whole is compiled with -finstrument-functions.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "coordinator/coordination/driver.h"
#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/leader/leader.h"
#include "coordinator/member/cluster_control_plane.h"
#include "coordinator/member/member.h"
#include "coordinator/testing/tree_replica.h"
#include "framework/store/sqlite/store.h"
#include "framework/worker/worker.h"

// What was noted.
namespace {

struct Note {
  const void* function;  // null: a mark
  const char* mark;
  int thread;
  char kind;  // '>' entered, '<' left, '!' a mark
};

constexpr std::size_t kMostNotes = 12'000'000;
Note notes[kMostNotes];
std::atomic<std::size_t> noted{0};

#define MILLRACE_NOT_NOTED __attribute__((no_instrument_function))

MILLRACE_NOT_NOTED void Add(const void* function, const char* mark, char kind) {
  static thread_local const int thread = gettid();
  const std::size_t at = noted.fetch_add(1);
  if (at < kMostNotes) notes[at] = {function, mark, thread, kind};
}

MILLRACE_NOT_NOTED void Mark(const char* mark) { Add(nullptr, mark, '!'); }

}  // namespace

extern "C" {
MILLRACE_NOT_NOTED void __cyg_profile_func_enter(void* function, void*) { Add(function, nullptr, '>'); }
MILLRACE_NOT_NOTED void __cyg_profile_func_exit(void* function, void*) { Add(function, nullptr, '<'); }
}

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kShard = "main";

[[noreturn]] void Give(const std::string& why) {
  std::fprintf(stderr, "millrace_ways: %s\n", why.c_str());
  std::_Exit(1);
}

void Must(const Status& status) {
  if (!status) Give(status.error().message);
}

// The tree of both processes, and who is to be told of its changes. Thread-safe.
class Tree {
 public:
  using News = std::function<void(const std::string& path)>;

  Tree() {
    for (const FixedNode& node : kFixedNodes)
      Write({{TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)}});
  }
  std::int64_t Join(News news) {
    const std::lock_guard lock(mutex_);
    const auto id = ++sessions_;
    told_[id] = std::move(news);
    return id;
  }
  void Leave(std::int64_t session) {
    const std::lock_guard lock(mutex_);
    told_.erase(session);
  }
  TreeReply Perform(const TreeRequest& request, std::int64_t session) {
    const std::lock_guard lock(mutex_);
    if (request.kind != TreeRequest::Kind::Write) return replica_.Read(request);
    TreeChanges changes;
    TreeReply reply = replica_.Apply(request.writes, session, ++transactions_, changes);
    for (const auto& [id, tell] : told_) {
      for (const std::string& path : changes.nodes) tell(path);
      for (const std::string& path : changes.parents) tell(path);
    }
    return reply;
  }
  void Write(std::vector<TreeWrite> writes) {
    const TreeReply reply = Perform({.kind = TreeRequest::Kind::Write, .writes = std::move(writes)}, 0);
    if (reply.status != TreeStatus::Ok) Give("the tree refuses a write: " + reply.message);
  }

 private:
  std::mutex mutex_;
  TreeReplica replica_;
  std::map<std::int64_t, News> told_;  // by session
  std::int64_t sessions_ = 0;
  std::int64_t transactions_ = 0;
};

class Session final : public TreeSession {
 public:
  // `marks`: it is w2's.
  Session(Tree& tree, const Clock& clock, bool marks) : tree_(tree), clock_(clock), marks_(marks) {
    id_ = tree_.Join([this](const std::string& path) { Tell({TreeEvent::Kind::Changed, path}); });
    Tell({TreeEvent::Kind::Connected, "", id_});
  }
  ~Session() override { tree_.Leave(id_); }

  std::vector<TreeReply> PerformAll(const std::vector<TreeRequest>& requests) override {
    std::vector<TreeReply> replies;
    for (const TreeRequest& request : requests) {
      for (const TreeWrite& write : request.writes) {
        if (write.path == "/assign/w2") Mark("the plan is written");
      }
      replies.push_back(tree_.Perform(request, id_));
    }
    return replies;
  }
  std::optional<TreeEvent> WaitEvent(Micros limit) override {
    std::unique_lock lock(mutex_);
    const auto wait = std::min<Micros>(limit, seconds(1));
    told_.wait_for(lock, wait, [this] { return interrupted_ || !events_.empty(); });
    interrupted_ = false;
    if (events_.empty()) return std::nullopt;
    TreeEvent event = std::move(events_.front());
    events_.pop_front();
    if (marks_ && event.path == "/assign/w2") Mark("there is a new page");
    if (marks_ && event.path == "/config/handlers") Mark("there is a new configuration");
    return event;
  }
  void Interrupt() override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    told_.notify_all();
  }
  BootTime LastContact() const override { return clock_.Now(); }
  Micros Timeout() const override { return seconds(10); }

 private:
  void Tell(TreeEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    told_.notify_all();
  }

  Tree& tree_;
  const Clock& clock_;
  const bool marks_;
  std::int64_t id_ = 0;
  std::mutex mutex_;
  std::condition_variable told_;
  std::deque<TreeEvent> events_;
  bool interrupted_ = false;
};

// The worker's way to its member, with marks for what is new.
class MarkedControlPlane final : public ControlPlane {
 public:
  MarkedControlPlane(ClusterControlPlane& cluster, StoresByShard shards)
      : cluster_(cluster), shards_(std::move(shards)) {}

  StoresByShard Shards() override { return shards_; }
  std::vector<TableSlices> Slices(const std::string& shard) override {
    std::vector<TableSlices> slices = cluster_.Slices(shard);
    const bool fresh = slices != slices_;
    if (fresh) slices_ = slices;
    Mark(fresh ? "new slices are taken" : "the same slices are taken");
    return slices;
  }
  std::shared_ptr<const Config> CurrentConfig() override {
    static thread_local const Config* before = nullptr;
    auto config = cluster_.CurrentConfig();
    const bool fresh = config.get() != before;
    before = config.get();
    Mark(fresh ? "a new configuration is taken" : "the same configuration is taken");
    return config;
  }
  std::shared_ptr<const Pauses> Paused() override { return cluster_.Paused(); }
  void FollowChanges(std::vector<Signal*> wakes) override { cluster_.FollowChanges(std::move(wakes)); }

 private:
  ClusterControlPlane& cluster_;
  const StoresByShard shards_;
  std::vector<TableSlices> slices_;  // of the one shard, asked for by one thread
};

template <class Condition>
void Await(const char* what, Condition condition) {
  for (const BootTime end = BootClock::now() + seconds(30); !condition();) {
    if (BootClock::now() > end) Give(std::string("there is no end of waiting for: ") + what);
    std::this_thread::sleep_for(milliseconds(5));
  }
  std::this_thread::sleep_for(milliseconds(100));  // what follows from it
}

WorkerDocument DocumentOf(const std::string& id) {
  WorkerDocument document;
  document.host = id;
  document.pid = 1;
  document.incarnation = id + ".1";
  return document;
}

Member::Calls CallsOf(ClusterControlPlane& control) {
  Member::Calls calls;
  calls.publish = [&control](const MemberView& view) {
    control.Publish(view);
    Mark("it is published");
  };
  calls.status = [] { return std::string("{}"); };
  return calls;
}

MemberOptions OptionsOf(const std::string& id) {
  MemberOptions options{id, DocumentOf(id)};
  options.status_interval = std::chrono::hours(1);
  return options;
}

void Run(const std::string& plugin_folder, const std::string& folder) {
  const SystemClock clock{};
  auto url = ParseStoreUrl("sqlite:" + folder + "/tasks.db");
  std::shared_ptr<Store> store = *sqlite::OpenStore(*url, {});
  SchemaSpec spec;
  spec.slices = 4;
  if (auto applied = store->OpenSchema()->Apply(spec); !applied) Give(applied.error().message);
  auto plugins = PluginSet::Load(plugin_folder, folder);
  if (!plugins) Give(plugins.error().message);

  Tree tree;
  // Long intervals: nothing runs beside what is looked at.
  tree.Write({{TreeWrite::Kind::Set, "/config/engine", R"({"lease":"60s","poll":"200ms","rewind":"60s"})"}});
  tree.Write({{TreeWrite::Kind::Set, "/config/handlers", R"({"noop":{"concurrency":1}})"}});

  // w1: a member without a worker, and the leader.
  const TableInfo table{"tasks", spec.slices};
  const auto catalog = std::make_shared<const TableCatalog>(TableCatalog{{{kShard, table}}});
  ClusterControlPlane first_control({});
  Member first(OptionsOf("w1"), ConfigLayers(), CallsOf(first_control));
  Leader::Calls calls;
  calls.facts = [catalog] {
    Mark("a decision begins");
    return LeaderFacts{catalog};
  };
  CalmOptions calm;
  calm.quiet = milliseconds(100);
  Leader leader({"w1", "w1.1", calm}, calls);
  Driver first_driver(std::make_unique<Session>(tree, clock, false), {&first, &leader}, clock);
  Must(first_driver.Start());
  Await("the first plan", [&] { return first_control.View()->slice_count == spec.slices; });

  // w2 takes its half.
  ClusterControlPlane second_control({});
  Member second(OptionsOf("w2"), ConfigLayers(), CallsOf(second_control));
  Driver second_driver(std::make_unique<Session>(tree, clock, true), {&second}, clock);
  Must(second_driver.Start());
  Await("the second plan", [&] { return second_control.View()->slice_count == spec.slices / 2; });
  MarkedControlPlane control(second_control, {{kShard, store}});
  Registry metrics;
  WorkerOptions options;
  options.id = "w2";
  options.state_dir = folder;
  Worker worker({clock, control, **plugins, metrics}, options);
  Must(worker.Start());
  Await("a worker at rest", [&] { return !worker.Status().shards.empty(); });

  // Several, since a task may be in a slice of w1, and threads do not meet in the same way each time.
  const auto operations = store->OpenOperations();
  NewTask task;
  task.handler = "noop";
  std::uint64_t ended = 0;
  for (int i = 0; i < 12; ++i) {
    Mark("a task is added");
    if (auto report = operations->Submit("tasks", std::span(&task, 1)); !report) Give(report.error().message);
    std::this_thread::sleep_for(milliseconds(400));
    if (worker.Totals().succeeded > ended) Mark("it has ended");
    ended = worker.Totals().succeeded;
  }
  if (ended == 0) Give("no task has run");

  Mark("a slice moves");
  tree.Write({{TreeWrite::Kind::Create, "/control/drain/w1"}});
  Await("the third plan", [&] { return second_control.View()->slice_count == spec.slices; });
  std::this_thread::sleep_for(milliseconds(500));
  Mark("it has moved");

  Mark("the configuration changes");
  tree.Write({{TreeWrite::Kind::Set, "/config/handlers", R"({"noop":{"concurrency":2}})"}});
  std::this_thread::sleep_for(milliseconds(1'000));
  Mark("it has changed");

  worker.Stop();
  if (!worker.WaitFor(seconds(20))) Give("the worker does not end");
  second_driver.Stop();
  first_driver.Stop();
}

}  // namespace
}  // namespace millrace::engine

// A line for each note: thread, kind, and a function's object and place in it, or a mark.
MILLRACE_NOT_NOTED int main(int argc, char** argv) {
  if (argc != 4) return 2;
  millrace::engine::Run(argv[1], argv[2]);
  const std::size_t count = noted.load();
  if (count > kMostNotes) millrace::engine::Give("there is too much to note");
  std::FILE* out = std::fopen(argv[3], "w");
  if (out == nullptr) return 1;
  std::map<const void*, Dl_info> objects;
  for (std::size_t i = 0; i < count; ++i) {
    const Note& note = notes[i];
    if (note.kind == '!') {
      std::fprintf(out, "%d ! %s\n", note.thread, note.mark);
      continue;
    }
    const auto [object, added] = objects.try_emplace(note.function);
    if (added) dladdr(note.function, &object->second);
    const auto base = reinterpret_cast<std::uintptr_t>(object->second.dli_fbase);
    std::fprintf(out, "%d %c %zx %s\n", note.thread, note.kind,
                 reinterpret_cast<std::uintptr_t>(note.function) - base, object->second.dli_fname);
  }
  return std::fclose(out) == 0 ? 0 : 1;
}
