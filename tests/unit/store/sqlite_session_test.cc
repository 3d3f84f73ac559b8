#include "framework/store/sqlite/schema_check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/store/sql/text.h"

namespace millrace::engine {
namespace {

class SqliteSessionTest : public testing::Test {
 protected:
  SqliteSessionTest() : folder_(MakeFolder()) {
    file_.path = folder_ + "/a.db";
    db_ = std::make_unique<sqlite::Session>(file_, true);
    EXPECT_TRUE(
        db_->Script("CREATE TABLE t (id INTEGER PRIMARY KEY, slice INT, run_at TEXT);"
                    "CREATE INDEX due ON t (slice, run_at)"));
  }
  ~SqliteSessionTest() override {
    db_.reset();
    std::filesystem::remove_all(folder_);
  }

  // What is wrong with the search for rows of one slice behind a place; empty: nothing.
  std::string Fault(const std::string& behind, std::size_t values, const std::string& bounds,
                    const std::string& order = "run_at, id") {
    return PlanFault(*db_, {"scan", "SELECT id FROM t WHERE slice=? AND " + behind + " ORDER BY " + order,
                            values, bounds})
        .value_or("");
  }

  std::string FaultOf(const std::string& sql, const std::string& bounds) {
    return PlanFault(*db_, {"statement", sql, 1, bounds}).value_or("");
  }

  sqlite::Session& db() { return *db_; }

 private:
  static std::string MakeFolder() {
    std::string form = (std::filesystem::temp_directory_path() / "millrace_XXXXXX").string();
    return mkdtemp(form.data()) == nullptr ? std::string() : form;
  }

  const std::string folder_;
  sqlite::File file_;
  std::unique_ptr<sqlite::Session> db_;
};

TEST_F(SqliteSessionTest, AStatementThatWasReadToItsEndIsNotRunAnew) {
  {
    auto rows = db().Select("INSERT INTO t (slice) VALUES (1) RETURNING id");
    EXPECT_TRUE(rows.Next());
    EXPECT_FALSE(rows.Next());
    EXPECT_FALSE(rows.Next());
    EXPECT_TRUE(rows.Finish());
  }
  auto count = db().Select("SELECT count(*) FROM t");
  ASSERT_TRUE(count.Next());
  EXPECT_EQ(count.Integer(0), 1);
}

TEST_F(SqliteSessionTest, ATextWithALongListIsNotKept) {
  sql::Connection& port = db();
  std::vector<std::uint64_t> ids(999, 1'000'000'000);
  for (int round = 0; round < 50; ++round) {
    ids[0] = static_cast<std::uint64_t>(round);
    ASSERT_TRUE(port.Write("DELETE FROM t WHERE id IN (" + sql::List(ids) + ")"));
  }
  ASSERT_TRUE(port.Write("DELETE FROM t WHERE id=?", {7}));
  EXPECT_LT(db().Kept(), 10U);
}

TEST_F(SqliteSessionTest, RowsThatWereReadToTheirEndOutliveAFullCache) {
  auto rows = db().Select("SELECT 1");
  EXPECT_TRUE(rows.Next());
  EXPECT_FALSE(rows.Next());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(db().Select("SELECT " + std::to_string(i)).Next());
  EXPECT_EQ(rows.Columns(), 1);
}

TEST_F(SqliteSessionTest, PairsAreSearchedByBothColumnsHoweverManyThereAre) {
  ASSERT_TRUE(db().Script("CREATE TABLE k (a TEXT, b TEXT, PRIMARY KEY (a, b))"));
  for (const std::size_t pairs : {1, 2, 999}) {
    const std::vector<sql::Value> values(2 * pairs, sql::Value("x"));
    std::string plan;
    ASSERT_TRUE(db().Query("EXPLAIN QUERY PLAN SELECT 1 FROM k WHERE (a,b)" + sql::InTuples("(?,?)", pairs),
                           sql::Connection::Values(values),
                           [&](const sql::Row& row) { plan += row.Text(4) + "\n"; }));
    EXPECT_NE(plan.find("SEARCH k USING"), plan.npos) << plan;
    EXPECT_NE(plan.find("(a=? AND b=?)"), plan.npos) << plan;
  }
}

TEST_F(SqliteSessionTest, ASearchByAllColumnsIsFine) {
  EXPECT_EQ(Fault("run_at=? AND id>?", 3, "slice=? AND run_at=? AND rowid>?"), "");
  EXPECT_EQ(Fault("run_at>?", 2, "slice=? AND run_at>?"), "");
}

TEST_F(SqliteSessionTest, ARowValueThatBoundsOnlyItsFirstColumnIsAFault) {
  EXPECT_NE(Fault("(run_at, id)>(?, ?)", 3, "slice=? AND run_at=? AND rowid>?"), "");
  EXPECT_NE(Fault("(run_at=? AND id>? OR run_at>?)", 4, "slice=? AND run_at=? AND rowid>?"), "");
}

TEST_F(SqliteSessionTest, ASortAndAScanAreFaults) {
  EXPECT_NE(Fault("run_at>?", 2, "slice=? AND run_at>?", "id").find("it sorts"), std::string::npos);
  EXPECT_NE(FaultOf("SELECT * FROM t WHERE run_at=?", "run_at=?").find("it scans"), std::string::npos);
}

TEST_F(SqliteSessionTest, AStatementThatCannotBePreparedIsAFault) {
  EXPECT_NE(FaultOf("SELECT id FROM t INDEXED BY gone WHERE slice=?", "slice=?"), "");
}

}  // namespace
}  // namespace millrace::engine
