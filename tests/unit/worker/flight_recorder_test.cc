#include "framework/worker/flight_recorder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "framework/worker/dead_recorders.h"

namespace millrace::engine {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class FlightRecorderTest : public ::testing::Test {
 protected:
  FlightRecorderTest() {
    char pattern[] = "/tmp/recorder_XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~FlightRecorderTest() override { std::filesystem::remove_all(folder_); }

  // A process that records two runs, ends one of them, does `last`, and is killed.
  template <class Last>
  void DieRecording(Last last) {
    const pid_t child = fork();
    if (child == 0) {
      auto recorder = FlightRecorder::Create(folder_, "w.1");
      if (!recorder) _exit(1);
      (*recorder)->NoteLife("sqlite:a", "w.life");
      const std::size_t first = (*recorder)->Reserve();
      (*recorder)->Begin(first, "w.life", {"tasks", 7}, 1);
      (*recorder)->Begin((*recorder)->Reserve(), "w.life", {"tasks", 8}, 3);
      (*recorder)->End(first);
      last(**recorder);
      raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

  // Writes this over each such text in the file, `behind` bytes after it.
  void Overwrite(const std::string& text, const std::string& by, std::size_t behind = 0) const {
    std::fstream file(folder_ + "/w.1.flight", std::ios::in | std::ios::out | std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    ASSERT_NE(whole.find(text), std::string::npos);
    for (auto at = whole.find(text); at != std::string::npos; at = whole.find(text, at + 1)) {
      file.seekp(static_cast<std::streamoff>(at + behind));
      file << by;
    }
  }
  static std::string BootId() {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }

  // What stands there is reported and believed in nothing.
  void ExpectOneProblem() const {
    std::vector<std::string> problems;
    EXPECT_THAT(DeadRecorder::Collect(folder_, {"other"}, &problems), IsEmpty());
    EXPECT_THAT(problems, SizeIs(1));
  }

  std::string folder_;
};

TEST_F(FlightRecorderTest, NamesWhatWasRunningWhenTheProcessWasKilled) {
  DieRecording([](FlightRecorder&) {});
  std::vector<std::string> problems;
  const auto dead = DeadRecorder::Collect(folder_, {"other"}, &problems);
  ASSERT_THAT(dead, SizeIs(1));
  ASSERT_THAT(dead[0]->runs(), SizeIs(1));
  EXPECT_EQ(dead[0]->runs()[0].key, (TaskKey{"tasks", 8}));
  EXPECT_EQ(dead[0]->runs()[0].attempt, 3u);
  EXPECT_EQ(dead[0]->runs()[0].incarnation, "w.life");
  EXPECT_EQ(dead[0]->lives()[0].store, "sqlite:a");
  EXPECT_THAT(problems, IsEmpty());
}

TEST_F(FlightRecorderTest, ChargesNobodyAfterAStopWasAskedFor) {
  DieRecording([](FlightRecorder& recorder) { recorder.NoteStopping(); });
  const auto dead = DeadRecorder::Collect(folder_, {"other"}, nullptr);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_THAT(dead[0]->runs(), IsEmpty());
  EXPECT_THAT(dead[0]->lives(), SizeIs(1));
}

TEST_F(FlightRecorderTest, ChargesNobodyAfterAReboot) {
  DieRecording([](FlightRecorder&) {});
  Overwrite(BootId(), std::string(BootId().size(), '0'));
  const auto dead = DeadRecorder::Collect(folder_, {"other"}, nullptr);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_THAT(dead[0]->runs(), IsEmpty());
  EXPECT_THAT(dead[0]->lives(), SizeIs(1));
}

TEST_F(FlightRecorderTest, ALiveProcessKeepsItsRecorder) {
  auto live = FlightRecorder::Create(folder_, "w.1");
  ASSERT_TRUE(live);
  EXPECT_THAT(DeadRecorder::Collect(folder_, {"other"}, nullptr), IsEmpty());
}

TEST_F(FlightRecorderTest, AnOrderlyEndLeavesNoFile) {
  { auto recorder = FlightRecorder::Create(folder_, "w.1"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FlightRecorderTest, ATornFileIsReportedAndLeftAlone) {
  std::ofstream(folder_ + "/torn.flight") << "rubbish";
  std::vector<std::string> problems;
  EXPECT_THAT(DeadRecorder::Collect(folder_, {"other"}, &problems), IsEmpty());
  EXPECT_THAT(problems, SizeIs(1));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/torn.flight"));
}

// A copied state folder, a snapshot that was restored: its lock is free while the worker lives.
TEST_F(FlightRecorderTest, ACopyOfALivingWorkersRecorderSpeaksForNobody) {
  auto live = FlightRecorder::Create(folder_, "w.1");
  ASSERT_TRUE(live);
  (*live)->NoteLife("sqlite:a", "w.life");
  std::filesystem::copy_file(folder_ + "/w.1.flight", folder_ + "/w.2.flight");
  ExpectOneProblem();
}

TEST_F(FlightRecorderTest, ARecorderThatOthersCanWriteIsNotBelieved) {
  DieRecording([](FlightRecorder&) {});
  std::filesystem::permissions(folder_ + "/w.1.flight", std::filesystem::perms(0666));
  ExpectOneProblem();
}

TEST_F(FlightRecorderTest, ARecorderSpeaksForTheWorkerThatItIsNamedAfterAlone) {
  DieRecording([](FlightRecorder&) {});
  std::filesystem::rename(folder_ + "/w.1.flight", folder_ + "/v.1.flight");
  ExpectOneProblem();
}

TEST_F(FlightRecorderTest, ATableNameThatMayNotStandInSqlIsNotBelieved) {
  DieRecording([](FlightRecorder&) {});
  Overwrite("tasks", "t;DROP");
  ExpectOneProblem();
}

TEST_F(FlightRecorderTest, MoreLivesThanThereIsRoomForAreNotBelieved) {
  DieRecording([](FlightRecorder&) {});
  // The number stands behind the boot id, in a field of 48 bytes, and a number of eight.
  const std::uint64_t lives = 257;
  Overwrite(BootId(), std::string(reinterpret_cast<const char*>(&lives), sizeof lives), 48 + 8);
  ExpectOneProblem();
}

TEST_F(FlightRecorderTest, AFullRecorderNotesNothingAndGoesOn) {
  auto recorder = FlightRecorder::Create(folder_, "w.1");
  ASSERT_TRUE(recorder);
  std::size_t slot = 0;
  std::size_t last = 0;
  while ((slot = (*recorder)->Reserve()) != FlightRecorder::kNoSlot) last = slot;
  (*recorder)->Begin(slot, "w.life", {"tasks", 1}, 1);
  (*recorder)->End(slot);
  (*recorder)->Release(slot);
  (*recorder)->Release(last);
  EXPECT_EQ((*recorder)->Reserve(), last);
}

TEST_F(FlightRecorderTest, ADeadRecorderIsKeptUntilItsLivesAreBuried) {
  DieRecording([](FlightRecorder&) {});
  DeadRecorders dead(folder_, "other");
  dead.Serve({"sqlite:a"});
  EXPECT_THAT(dead.For("sqlite:b"), IsEmpty());
  const auto burials = dead.For("sqlite:a");
  ASSERT_THAT(burials, SizeIs(1));
  EXPECT_THAT(burials[0].crashes, SizeIs(1));
  EXPECT_THAT(dead.For("sqlite:a"), SizeIs(1));
  dead.Done(burials[0]);
  EXPECT_THAT(dead.For("sqlite:a"), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FlightRecorderTest, ARecorderOfAnotherStoreIsLeftToOthers) {
  DieRecording([](FlightRecorder&) {});
  DeadRecorders dead(folder_, "other");
  dead.Serve({"sqlite:b"});
  EXPECT_THAT(dead.For("sqlite:b"), IsEmpty());
  EXPECT_FALSE(std::filesystem::is_empty(folder_));
}

// Else nobody who serves one of two shards would be charged after the other was removed.
TEST_F(FlightRecorderTest, AStoreThatWasLeftInGoodOrderIsNobodysConcern) {
  DieRecording([](FlightRecorder& recorder) {
    recorder.NoteLife("sqlite:gone", "w.gone");
    recorder.ForgetLife("w.gone");
    recorder.ForgetLife("w.never");
  });
  DeadRecorders dead(folder_, "other");
  dead.Serve({"sqlite:a"});
  const auto burials = dead.For("sqlite:a");
  ASSERT_THAT(burials, SizeIs(1));
  EXPECT_THAT(burials[0].crashes, SizeIs(1));
  dead.Done(burials[0]);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FlightRecorderTest, ARecorderThatIsFullOfLivesKeepsTheNewestThatAreNotForgotten) {
  DieRecording([](FlightRecorder& recorder) {
    for (int i = 1; i < 256; ++i) recorder.NoteLife("sqlite:a", "w.l" + std::to_string(i));
    recorder.ForgetLife("w.l100");
    recorder.NoteLife("sqlite:a", "w.new");
  });
  const auto dead = DeadRecorder::Collect(folder_, {"other"}, nullptr);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_THAT(dead[0]->lives(), SizeIs(256));
  EXPECT_EQ(dead[0]->lives().front().incarnation, "w.life");
  EXPECT_EQ(dead[0]->lives().back().incarnation, "w.new");
}

TEST_F(FlightRecorderTest, AStoreThatIsServedLaterIsLookedAtThenAndOneThatIsLeftIsLetGo) {
  DieRecording([](FlightRecorder&) {});
  DeadRecorders dead(folder_, "other");
  dead.Serve({"sqlite:b"});
  EXPECT_THAT(dead.For("sqlite:a"), IsEmpty());
  dead.Serve({"sqlite:a", "sqlite:b"});
  EXPECT_THAT(dead.For("sqlite:a"), SizeIs(1));
  dead.Serve({"sqlite:b"});
  EXPECT_THAT(dead.For("sqlite:a"), IsEmpty());
  EXPECT_THAT(DeadRecorder::Collect(folder_, {}, nullptr), SizeIs(1)) << "it is still locked";
}

}  // namespace
}  // namespace millrace::engine
