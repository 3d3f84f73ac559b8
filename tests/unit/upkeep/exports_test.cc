#include "coordinator/upkeep/exports.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "coordinator/upkeep/task_json.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExportsTest : public testing::Test {
 protected:
  ExportsTest() {
    char pattern[] = "/tmp/exports_XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~ExportsTest() override { std::filesystem::remove_all(folder_); }

  static std::vector<TaskRecord> Tasks(std::uint64_t first, std::uint64_t last) {
    std::vector<TaskRecord> tasks;
    for (std::uint64_t id = first; id <= last; ++id) {
      TaskRecord& record = tasks.emplace_back();
      record.task.key = {"tasks", id};
      record.task.handler = "noop";
      record.task.params = R"({"text":"two\nlines"})";
      record.finished_at = now_;
    }
    return tasks;
  }
  std::vector<std::string> Lines(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static constexpr WallTime now_ = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20);
  std::string folder_;
  Exports exports_{"main", "host1"};
};

TEST_F(ExportsTest, ATaskIsALineOfTheFileOfItsDayAndHost) {
  EXPECT_TRUE(exports_.Write("noop", folder_, Tasks(1, 2), now_));
  EXPECT_TRUE(exports_.Write("noop", folder_, Tasks(3, 3), now_ + std::chrono::hours(23)));
  EXPECT_TRUE(exports_.Write("noop", folder_, Tasks(4, 4), now_ + std::chrono::hours(24)));
  const auto lines = Lines("2026-11-20.host1.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto task = nlohmann::json::parse(lines[i]);
    EXPECT_EQ(task["name"], "main/tasks/" + std::to_string(i + 1));
    EXPECT_EQ(task["params"]["text"], "two\nlines");
  }
  EXPECT_EQ(Lines("2026-11-21.host1.jsonl").size(), 1U);
  EXPECT_THAT(exports_.Troubles(), IsEmpty());
}

// It is the only copy, once the rows are gone.
TEST_F(ExportsTest, ParamsAndProgressStandInTheLineAsTheyWereWritten) {
  auto tasks = Tasks(1, 2);
  tasks[0].task.params = "{\"id\": 123456789012345678901,\n\"part\":0.10000000000000000555,\"id\":1e2}\r\n";
  tasks[0].task.progress = "[-0, 1.0]";
  tasks[1].task.progress = "\xEF\xBB\xBF{}";
  EXPECT_TRUE(exports_.Write("noop", folder_, tasks, now_));
  const auto lines = Lines("2026-11-20.host1.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0],
              HasSubstr(R"("params":{"id": 123456789012345678901, "part":0.10000000000000000555,"id":1e2})"));
  EXPECT_THAT(lines[0], HasSubstr(R"("progress":[-0, 1.0],)"));
  EXPECT_EQ(nlohmann::json::parse(lines[0])["progress"].size(), 2U);
  EXPECT_TRUE(nlohmann::json::parse(lines[1])["progress"].is_string())
      << "a mark of the byte order is no JSON";
}

// Each level takes some of the stack of whoever copies it.
TEST_F(ExportsTest, WhatIsNestedDeeplyIsHandedOutAsAText) {
  auto tasks = Tasks(1, 1);
  tasks[0].task.progress = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_TRUE(exports_.Write("noop", folder_, tasks, now_));
  const auto lines = Lines("2026-11-20.host1.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["progress"], tasks[0].task.progress);
  EXPECT_EQ(TaskToJson("main", tasks[0])["progress"], tasks[0].task.progress);
}

TEST_F(ExportsTest, ATaskThatNeverExpiresHasNoTimeForThat) {
  auto tasks = Tasks(1, 2);
  tasks[0].task.expires_at = kNeverExpires;  // as it was retried
  tasks[1].task.expires_at = now_;
  EXPECT_TRUE(exports_.Write("noop", folder_, tasks, now_));
  const auto lines = Lines("2026-11-20.host1.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(nlohmann::json::parse(lines[0])["expires_at"].is_null());
  EXPECT_EQ(nlohmann::json::parse(lines[1])["expires_at"], "2026-11-20T00:00:00Z");
}

TEST_F(ExportsTest, APartOfALineThatAKilledWriterHasLeftSpoilsNoOther) {
  std::ofstream(folder_ + "/2026-11-20.host1.jsonl") << "{\"name\":\"main/ta";
  EXPECT_TRUE(exports_.Write("noop", folder_, Tasks(1, 1), now_));
  const auto lines = Lines("2026-11-20.host1.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(nlohmann::json::accept(lines[1]));
}

// The one that appends may have to cut off again what it could not write whole.
TEST_F(ExportsTest, NobodyAppendsWhileAnotherDoes) {
  const std::string path = folder_ + "/2026-11-20.host1.jsonl";
  const int other = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_FALSE(exports_.Write("noop", folder_, Tasks(1, 1), now_));
  EXPECT_THAT(exports_.Troubles(), ElementsAre(HasSubstr("locked")));
  EXPECT_THAT(Lines("2026-11-20.host1.jsonl"), IsEmpty());
  ASSERT_EQ(close(other), 0);
  EXPECT_TRUE(exports_.Write("noop", folder_, Tasks(1, 1), now_));
  EXPECT_EQ(Lines("2026-11-20.host1.jsonl").size(), 1U);
}

TEST_F(ExportsTest, AFolderThatCanNotBeWrittenIsATroubleUntilItCan) {
  const std::string missing = folder_ + "/missing";
  EXPECT_FALSE(exports_.Write("noop", missing, Tasks(1, 1), now_));
  EXPECT_THAT(exports_.Troubles(), ElementsAre(HasSubstr(missing)));
  std::filesystem::create_directory(missing);
  EXPECT_TRUE(exports_.Write("noop", missing, Tasks(1, 1), now_));
  EXPECT_THAT(exports_.Troubles(), IsEmpty());
  EXPECT_FALSE(exports_.Write("noop", "/dev/null", Tasks(1, 1), now_));
  exports_.KeepTroubles({});
  EXPECT_THAT(exports_.Troubles(), IsEmpty());
}

}  // namespace
}  // namespace millrace::engine
