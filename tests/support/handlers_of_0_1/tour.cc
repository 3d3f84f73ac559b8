// Handlers that use every part of <millrace/handler.h> as version 0.1 had it, in each way in which an author
// may write it. This file never changes: it is built against the copy of those headers beside it, against
// today's, and against grown ones (tests/unit/plugin/abi).
#include <millrace/handler.h>

#include <span>
#include <string>
#include <vector>

using namespace millrace;

namespace {

// What an author calls own things is nobody else's business.
struct Failure {
  int NextRetry = 0;
};

Outcome EndedAs(const std::string& end) {
  using namespace std::chrono_literals;
  if (end == "retry") return Retry("again").Class("asked");
  if (end == "after") return Retry("again").After(3s);
  if (end == "at") return Retry("again").At(Time(Duration(1'800'000'000'000'000)));
  if (end == "fail") return Fail("never");
  if (end == "snooze") return Snooze(5s);
  if (end == "until") return SnoozeUntil(Time(Duration(1'800'000'000'000'000)));
  if (end == "skip") return Skip("not needed");
  if (end == "bad") throw BadInput("it is wrong");
  if (end == "throw") throw std::runtime_error("it is odd");
  if (end == "strange") throw 7;
  return Done("done");
}

class Tour final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    token_ = secrets.Get("token");
    if (secrets.Find("none")) throw BadInput("there is a secret too many");
    names_ = options.At("names").Items().size();
    label_ = options.Text("label", "tour") + (options.Bool("loud", false) ? "!" : ".");
    ratio_ = options.Number("ratio", 0.5);
    limit_ = options.Integer("limit", 10);
  }
  void Close() override { label_.clear(); }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    const millrace::Json& params = task.Params();
    if (params.Find("end") != nullptr) return EndedAs(params.Text("end"));
    context.Info("on tour");
    context.Warning("careful");
    context.Error("well");
    context.SaveProgress("half way");
    const StopToken stop = context.Stop();
    if (stop.stop_requested() || context.ShouldStop() || context.TimeLeft() <= Duration::zero()) {
      return Fail("it is to stop");
    }
    if (context.Deadline() < std::chrono::steady_clock::now()) return Fail("it is late");
    if (!context.WaitFor(std::chrono::milliseconds(1))) return Fail("it may not wait");
    const Rows none = context.Query("SELECT 1 WHERE ?", {nullptr});
    const std::vector<SqlValue> values{std::int64_t{1}, 2.5, "three", nullptr};
    const std::uint64_t affected = context.Execute("UPDATE t SET a=?, b=?, c=?, d=?", values);
    const Rows rows = context.Query("SELECT a FROM t WHERE b=?", std::span(values).subspan(1, 1));
    context.Execute("DELETE FROM t");
    const bool added = context.Submit({.handler = "noop",
                                       .params = "{\"n\":1}",
                                       .key = "k",
                                       .batch = "b",
                                       .priority = 3,
                                       .run_at = task.RunAt(),
                                       .delay = Duration(0)});
    Failure own;
    own.NextRetry = static_cast<int>(affected);
    return Done(std::string(task.Name()) + " " + std::string(task.Handler()) + " " + std::string(task.Key()) +
                " " + std::string(task.Batch()) + " " + std::string(task.Progress()) + " " +
                std::to_string(task.Attempt()) + std::to_string(task.Failures()) +
                std::to_string(task.Priority()) + " " + params.Dump() + " " + token_ + " " + label_ + " " +
                std::to_string(names_ + static_cast<std::size_t>(limit_)) +
                (ratio_ < 1 ? " part " : " all ") + std::to_string(own.NextRetry) +
                (none.Empty() ? " none " : " some ") + rows.rows.at(0).at(0).value_or("null") +
                (added ? " added" : " taken") +
                (task.IdempotencyKey().empty() || task.CreatedAt() > Time::max() ? " ?" : ""));
  }

 private:
  std::string token_;
  std::string label_;
  std::size_t names_ = 0;
  double ratio_ = 0;
  std::int64_t limit_ = 0;
};

struct Together : BatchHandler {
  std::vector<Outcome> Run(std::span<const Task> tasks, Context&) override {
    std::vector<Outcome> outcomes;
    for (const Task& task : tasks) outcomes.push_back(EndedAs(task.Params().Text("end", "done")));
    return outcomes;
  }
};

}  // namespace

MILLRACE_PLUGIN("tour", "0.1", Register<Tour>("tour", "Uses all there is"),
                millrace::Register<Together>("together", "Several in one call", 20))
