// From the tables of version 3 to those of today, beside programs of version 3 that go on working.
#include <atomic>
#include <chrono>
#include <thread>

#include "framework/store/sql/claimers.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

constexpr Micros kLongestStop = std::chrono::seconds(2);

// What a worker of version 3 and a producer send, one task after the other; each row of it is claimed and
// settled once.
class FormerWorker {
 public:
  explicit FormerWorker(std::unique_ptr<SqlClient> client)
      : client_(std::move(client)), thread_([this] { Work(); }) {}
  ~FormerWorker() { Stop(); }

  // Until so many more tasks have ended.
  void WaitFor(int more) {
    const int until = rounds_.load() + more;
    for (int now = rounds_.load(); now < until && !broken_.load(); now = rounds_.load()) rounds_.wait(now);
  }
  void Stop() {
    stopping_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  // After Stop.
  int ended() const { return ended_; }
  Micros longest() const { return longest_; }
  const std::string& trouble() const { return trouble_; }

 private:
  // A lock conflict is tried again, as a worker does.
  bool Send(const std::vector<std::string>& transaction) {
    while (true) {
      std::optional<Error> error;
      for (const std::string& sql : transaction) {
        const auto done = client_->Run(sql);
        if (done) continue;
        error = done.error();
        break;
      }
      if (!error) return true;
      (void)client_->Run("ROLLBACK");
      if (error->code == ErrorCode::Conflict) continue;
      trouble_ = error->message;
      return false;
    }
  }

  void Work() {
    for (int id = 1; !stopping_.load(); ++id) {
      // SQLite gives its lock to nobody in turn: who never rests between two batches keeps it from all
      // others.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const BootTime began = BootClock::now();
      const std::string number = std::to_string(id);
      const std::string mine = " WHERE id=" + number + " AND state=2 AND claimed_by=17 AND attempt=1";
      const std::string kept =
          "id,slice,handler,priority,run_at,params,biz_key,batch,attempt,crashes,claimed_at,progress,"
          "created_at";
      const bool done =
          Send({"INSERT INTO tasks (id,slice,handler,params) VALUES (" + number + ",1,'noop','{}')"}) &&
          Send({"UPDATE millrace_beats SET beat=beat+1 WHERE id='a.live'"}) &&
          Send({"UPDATE tasks SET state=2, attempt=attempt+1, claimed_by=17, claimed_at=created_at, "
                "updated_at=updated_at WHERE id=" +
                number + " AND state=0 AND attempt=0"}) &&
          Send({"BEGIN",
                "INSERT INTO tasks_done (" + kept +
                    ",claimed_by,state,failures,last_error,result,finished_at) SELECT " + kept +
                    ",'a.live',1,failures,last_error,'',created_at FROM tasks" + mine,
                "DELETE FROM tasks" + mine, "COMMIT"});
      longest_ = std::max(longest_, std::chrono::duration_cast<Micros>(BootClock::now() - began));
      ended_ += done;
      broken_.store(!done);
      rounds_.fetch_add(1);
      rounds_.notify_all();
      if (!done) return;
    }
  }

  const std::unique_ptr<SqlClient> client_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> broken_{false};
  std::atomic<int> rounds_{0};
  int ended_ = 0;
  Micros longest_{};
  std::string trouble_;
  std::thread thread_;
};

constexpr const char* kLive =
    "INSERT INTO millrace_incarnations (id,number,worker,host,pid,lease_us,slices,started_at,dead) VALUES "
    "('a.live',17,'a','here',17,10000000,'','2026-01-01 00:00:00.000000',0)";
constexpr const char* kBeat = "INSERT INTO millrace_beats (id,beat) VALUES ('a.live',0)";

TEST_P(LiveUpgradeContract, AWorkerOfTheOlderVersionGoesOnBesideIt) {
  Run(kLive);
  Run(kBeat);
  FormerWorker worker(made_->NewClient());
  worker.WaitFor(50);
  auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(*was, 3U);
  worker.WaitFor(50);
  worker.Stop();
  EXPECT_EQ(worker.trouble(), "");
  EXPECT_LT(worker.longest(), kLongestStop);
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks"), "0");
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks_done WHERE state=1 AND attempt=1"),
            std::to_string(worker.ended()));
  EXPECT_EQ(Ask("SELECT readable_by FROM millrace_schema WHERE task_table=''"), "3");
  EXPECT_EQ(Ask("SELECT MIN(version) FROM millrace_schema"), std::to_string(kSchemaVersion));
  ExpectClean();
}

// A backup, or somebody's forgotten session.
TEST_P(LiveUpgradeContract, WhileSomebodyHasATableOpenNobodyIsHeldUpForLong) {
  Run(kLive);
  Run(kBeat);
  Run("INSERT INTO tasks (id,slice,handler,params) VALUES (1000000,2,'noop','{}')");
  const auto reader = made_->NewClient();
  ASSERT_TRUE(reader->Run("BEGIN"));
  ASSERT_TRUE(reader->Run("SELECT COUNT(*) FROM tasks"));
  FormerWorker worker(made_->NewClient());
  worker.WaitFor(20);
  int pauses = 0;
  UpgradeCalls calls = AtOnce();
  calls.pause = [&](Micros) {
    worker.WaitFor(20);  // everybody else has a turn
    if (++pauses == 2) {
      EXPECT_TRUE(reader->Run("COMMIT"));
    }
  };
  auto was = store().OpenSchema()->Upgrade(calls);
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(pauses, made_->late_commits() ? 2 : 0) << "SQLite's readers hold nobody up";
  worker.WaitFor(20);
  worker.Stop();
  EXPECT_EQ(worker.trouble(), "");
  EXPECT_LT(worker.longest(), kLongestStop);
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks"), "1");
  ExpectClean();
}

// On SQLite it is one transaction.
TEST_P(LiveUpgradeContract, WhereverItWasCutShortItIsRunAgain) {
  std::vector<std::string> steps;
  if (made_->late_commits()) {
    steps.push_back("UPDATE millrace_schema SET version=4, readable_by=3 WHERE task_table=''");
    for (const char* table : {"tasks", "tasks_done", "tasks_failed"})
      steps.push_back(std::string("ALTER TABLE ") + table + " ADD COLUMN expires_at DATETIME(6) NULL");
    steps.push_back("DROP VIEW tasks_all");
  }
  for (std::size_t cut = 0; cut <= steps.size(); ++cut) {
    SCOPED_TRACE(cut);
    Make(3);
    Run("DROP TABLE millrace_pauses");
    for (std::size_t i = 0; i < cut; ++i) Run(steps[i]);
    const auto tables = store().OpenSchema()->Tables();
    ASSERT_FALSE(tables) << "a column may be missing";
    EXPECT_EQ(tables.error().code, ErrorCode::Conflict);
    EXPECT_NE(tables.error().message.find("millrace schema upgrade"), std::string::npos)
        << tables.error().message;
    auto was = Upgrade();
    ASSERT_TRUE(was) << was.error().message;
    EXPECT_EQ(*was, 3U);
    ExpectClean();
  }
}

TEST_P(LiveUpgradeContract, RowsOfEveryPoolAreAsTheyWere) {
  const std::string columns =
      "id,slice,state,handler,priority,run_at,params,failures,attempt,crashes,created_at";
  const std::string values =
      ",1,STATE,'noop',5,'2026-01-01 00:00:00.000000','{}',0,1,0,'2026-01-01 "
      "00:00:00.000000'";
  const auto add = [&](const std::string& pool, int id, const std::string& state, const std::string& more,
                       const std::string& other) {
    std::string text = values;
    text.replace(text.find("STATE"), 5, state);
    Run("INSERT INTO tasks" + pool + " (" + columns + more + ") VALUES (" + std::to_string(id) + text +
        other + ")");
  };
  add("", 1, "0", "", "");
  add("", 2, "3", "", "");
  add("_done", 3, "1", ",finished_at", ",'2026-01-02 00:00:00.000000'");
  add("_failed", 4, "-1", ",finished_at,error_class", ",'2026-01-02 00:00:00.000000','x'");
  const std::string whole = "SELECT " + columns + ",finished_at,error_class FROM tasks_all ORDER BY id";
  const Table before = All(whole);
  ASSERT_EQ(before.size(), 4U);
  ASSERT_TRUE(Upgrade());
  EXPECT_EQ(All(whole), before);
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks_all WHERE expires_at IS NULL"), "4");
}

}  // namespace
}  // namespace millrace::engine
