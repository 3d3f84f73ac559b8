// Whatever the tasks of a call say and meet, SQL takes effect once for those that are done, and not at all
// for the others; in a worker, and with the kit.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "framework/handler_kit/local_run.h"
#include "framework/plugin/handler_instance.h"
#include "framework/testing/manual_clock.h"
#include "framework/worker/attempt_runner.h"
#include "no_host.h"
#include "scripted_handlers.h"
#include "scripted_transaction.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

struct Script {
  int sql = 0;
  std::string fault;
  bool swallow = false;
  std::string outcome = "done";

  std::string Params() const {
    return R"({"sql":)" + std::to_string(sql) + R"(,"fault":")" + fault + R"(","swallow":)" +
           (swallow ? "true" : "false") + R"(,"outcome":")" + outcome + R"("})";
  }
  bool done() const { return outcome == "done"; }
  bool Meets(const std::string& what) const { return sql > 0 && fault == what; }
  // It fails by itself, and not for what others in its call do.
  bool Guilty() const {
    if (outcome == "throw" || outcome == "bad" || outcome == "retry" || outcome == "fail") return true;
    return Meets("data") || Meets("drop") || Meets("lost");
  }
};

std::ostream& operator<<(std::ostream& out, const Script& script) { return out << script.Params(); }

enum class Style { Plain, Batch, Silent };

const millrace_handler& HandlerOf(Style style) {
  if (style == Style::Plain) return ScriptedPlain();
  return style == Style::Batch ? ScriptedBatch() : ScriptedSilent();
}

rc::Gen<Script> AnyScript() {
  return rc::gen::build<Script>(
      rc::gen::set(&Script::sql, rc::gen::inRange(0, 3)),
      rc::gen::set(&Script::fault, rc::gen::weightedElement<std::string>(
                                       {{8, ""}, {1, "data"}, {1, "drop"}, {1, "lost"}, {1, "escape"}})),
      rc::gen::set(&Script::swallow),
      rc::gen::set(&Script::outcome, rc::gen::weightedElement<std::string>({{6, "done"},
                                                                            {1, "retry"},
                                                                            {1, "fail"},
                                                                            {1, "snooze"},
                                                                            {1, "skip"},
                                                                            {1, "throw"},
                                                                            {1, "bad"}})));
}

rc::Gen<std::vector<Script>> AnyScripts() {
  return rc::gen::mapcat(rc::gen::inRange(1, 10), [](int count) {
    return rc::gen::container<std::vector<Script>>(static_cast<std::size_t>(count), AnyScript());
  });
}

rc::Gen<Style> AnyStyle() { return rc::gen::element(Style::Plain, Style::Batch, Style::Silent); }

// What the database does by itself.
Journal AnyTrouble() {
  Journal journal;
  journal.refused_connections = *rc::gen::inRange(0, 2);
  journal.conflicts = *rc::gen::inRange(0, 5);
  journal.commits = *rc::gen::container<std::deque<CommitVerdict>>(rc::gen::element(
      CommitVerdict::Committed, CommitVerdict::Committed, CommitVerdict::Refused, CommitVerdict::Transient,
      CommitVerdict::Escaped, CommitVerdict::Broken, CommitVerdict::Unavailable));
  return journal;
}

// Runs calls as a lane's thread does, until every task has ended.
class LocalLane final : public CallWatch {
 public:
  LocalLane(Style style, const std::vector<Script>& scripts, Journal& journal)
      : journal_(journal), transaction_(journal) {
    setup_.handler = OpenHandler(HandlerOf(style), "scripted", "{}", {}).value();
    setup_.threads = 1;
    CallPart all;
    for (const Script& script : scripts) {
      Task task;
      task.key = {"tasks", all.attempts.size() + 1};
      task.handler = "scripted";
      task.params = script.Params();
      all.attempts.push_back(std::make_shared<Attempt>(host_, "main", task, lease_, false));
    }
    std::deque<CallPart> waiting{all};
    AttemptRunner runner(clock_, *this);
    while (!waiting.empty()) {
      const CallPart part = waiting.front();
      waiting.pop_front();
      for (CallPart& next : runner.Run(setup_, part, transaction_)) waiting.push_back(std::move(next));
    }
    for (const Settlement& one : host_->ended) ends_[one.key.id].push_back(one);
    for (const Settlement& one : journal_.settled) ends_[one.key.id].push_back(one);
  }

  const std::vector<Settlement>& EndsOf(std::size_t task) { return ends_[task]; }
  int EffectsOf(std::size_t task) { return journal_.effects["main/tasks/" + std::to_string(task)]; }
  int calls() const { return calls_; }

 private:
  struct Host final : public NoHost {
    void Ended(AttemptResult result) override { ended.push_back(result.settlement); }
    std::vector<Settlement> ended;
  };

  void Begin(const std::vector<AttemptPtr>&, BootTime, BootTime) override { ++calls_; }
  bool Finish(BootTime) override {
    clock_.Advance(std::chrono::microseconds(1));
    lease_->Renewed(clock_.Now());
    return true;
  }
  void EndsTransaction() override {}

  Journal& journal_;
  ScriptedTransaction transaction_;
  ManualClock clock_;
  const std::shared_ptr<Host> host_ = std::make_shared<Host>();
  const std::shared_ptr<Lease> lease_ = std::make_shared<Lease>("w1.a", seconds(10), clock_.Now());
  LaneSetup setup_;
  int calls_ = 0;
  std::map<std::size_t, std::vector<Settlement>> ends_;
};

bool InDoubt(const Settlement& end) { return end.error_class == "escaped"; }

void CheckEnd(const Script& script, const Settlement& end, int effects) {
  if (InDoubt(end)) {
    RC_ASSERT(end.to == Settlement::To::Failed);
    RC_ASSERT(effects <= script.sql);
  } else if (end.to == Settlement::To::Succeeded) {
    RC_ASSERT(script.done());
    RC_ASSERT(effects == script.sql);
  } else {
    RC_ASSERT(effects == 0);
  }
}

// Each task ends once; SQL of a BatchHandler's tasks that are not done is not sent at all.
void CheckAll(Style style, std::vector<Script> scripts, LocalLane& lane) {
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    if (style == Style::Batch && !scripts[i].done()) scripts[i].sql = 0;
    RC_ASSERT(lane.EndsOf(i + 1).size() == 1u);
    CheckEnd(scripts[i], lane.EndsOf(i + 1)[0], lane.EffectsOf(i + 1));
  }
}

RC_GTEST_PROP(Effects, HappenOnceForWhatIsDoneAndNotAtAllForTheRest, ()) {
  const Style style = *AnyStyle();
  const auto scripts = *AnyScripts();
  Journal journal = AnyTrouble();
  LocalLane lane(style, scripts, journal);
  CheckAll(style, scripts, lane);
}

// Where the database does nothing by itself, each task's end is its own, whatever the others of its call do.
RC_GTEST_PROP(Effects, NoTaskIsChargedForAnother, ()) {
  const Style style = *AnyStyle();
  const auto scripts = *AnyScripts();
  const bool escapes = std::any_of(scripts.begin(), scripts.end(),
                                   [](const Script& script) { return script.Meets("escape"); });
  Journal journal;
  LocalLane lane(style, scripts, journal);
  CheckAll(style, scripts, lane);
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    const Settlement& end = lane.EndsOf(i + 1)[0];
    if (InDoubt(end)) RC_ASSERT(escapes && (scripts[i].sql > 0 || style != Style::Plain));
    if (end.failed_attempt && !InDoubt(end)) RC_ASSERT(scripts[i].Guilty());
    if (!escapes && scripts[i].done() && !scripts[i].Guilty()) {
      RC_ASSERT(end.to == Settlement::To::Succeeded);
    }
  }
}

RC_GTEST_PROP(Effects, OfAnEarlyCommitOnlyTasksThatSentSqlAreInDoubt, ()) {
  auto scripts = *AnyScripts();
  scripts.push_back({1, "escape", false, "done"});
  scripts.push_back({});
  Journal journal;
  LocalLane lane(Style::Plain, scripts, journal);
  CheckAll(Style::Plain, scripts, lane);
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    if (InDoubt(lane.EndsOf(i + 1)[0])) RC_ASSERT(scripts[i].sql > 0);
  }
}

TEST(EffectsTest, APoisonOfABatchStandsAloneAfterAFewCalls) {
  std::vector<Script> scripts(250, Script{1, "", false, "done"});
  scripts[100].fault = "drop";
  Journal journal;
  LocalLane lane(Style::Batch, scripts, journal);
  for (std::size_t i = 0; i < scripts.size(); ++i) EXPECT_EQ(lane.EffectsOf(i + 1), i == 100 ? 0 : 1);
  EXPECT_TRUE(lane.EndsOf(101)[0].failed_attempt);
  EXPECT_LE(lane.calls(), 20);
}

class OneHandler final : public PluginSet {
 public:
  explicit OneHandler(const millrace_handler& handler) : handler_(handler) {}
  std::vector<HandlerInfo> Handlers() const override { return {}; }
  Result<std::unique_ptr<HandlerInstance>> Open(const std::string&, const std::string& type,
                                                const std::string& options,
                                                const Secrets& secrets) const override {
    return OpenHandler(handler_, type, options, secrets);
  }

 private:
  const millrace_handler& handler_;
};

class JournalStore final : public Store {
 public:
  explicit JournalStore(Journal& journal) : journal_(journal) {}
  std::string Describe() const override { return "journal"; }
  Status Ping() override { return {}; }
  std::unique_ptr<TaskStore> OpenTasks() override { return nullptr; }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return nullptr; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override {
    return std::make_unique<ScriptedTransaction>(journal_);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return nullptr; }
  std::unique_ptr<SchemaStore> OpenSchema() override { return nullptr; }
  std::unique_ptr<PruneStore> OpenPruning() override { return nullptr; }
  std::unique_ptr<OverviewStore> OpenOverview() override { return nullptr; }

 private:
  Journal& journal_;
};

// What the kit says of each task is what took effect.
RC_GTEST_PROP(Effects, OfTheKitAreThoseOfAWorker, ()) {
  const Style style = *AnyStyle();
  auto scripts = *AnyScripts();
  Journal journal = AnyTrouble();
  JournalStore store(journal);
  LocalRunOptions options;
  options.type = "scripted";
  options.params.clear();
  for (const Script& script : scripts) options.params.push_back(script.Params());
  options.store = &store;
  options.commit = true;
  const ManualClock clock;
  const auto report = RunLocally(OneHandler(HandlerOf(style)), options, clock);
  RC_ASSERT(report.has_value());
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    const LocalEnd& end = report->ends[i];
    const int effects = journal.effects["local/tasks/" + std::to_string(i + 1)];
    if (style == Style::Batch && !scripts[i].done()) scripts[i].sql = 0;
    CheckEnd(scripts[i], end.end, effects);
    RC_ASSERT((end.effect == LocalEffect::InDoubt) == InDoubt(end.end));
    if (effects > 0) RC_ASSERT(end.effect == LocalEffect::Committed || end.effect == LocalEffect::InDoubt);
    if (end.effect == LocalEffect::Committed) RC_ASSERT(end.end.to == Settlement::To::Succeeded);
  }
}

}  // namespace
}  // namespace millrace::engine
