#include <gtest/gtest.h>
#include <millrace/testing.h>

constexpr const char* kGuests =
    "CREATE TABLE guests (name TEXT, greeted INT); INSERT INTO guests VALUES ('Ann', 0)";

TEST(Greet, GreetsAndCounts) {
  millrace::HandlerTest test("greet");
  test.Configure(R"({"options":{"greeting":"good morning"}})");
  test.UseSqlite(kGuests);
  const auto run = test.Run(R"({"name":"Ann"})");
  EXPECT_EQ(run.task().end, millrace::TaskEnd::Succeeded);
  EXPECT_EQ(run.task().text, "good morning, Ann");
  EXPECT_EQ(test.Query("SELECT greeted FROM guests").rows[0][0], "1");
}

TEST(Greet, FailsWithoutAName) {
  millrace::HandlerTest test("greet");
  test.UseSqlite(kGuests);
  const auto run = test.Run(R"({"nmae":"Ann"})");
  EXPECT_EQ(run.task().end, millrace::TaskEnd::Failed);
  EXPECT_EQ(run.task().text, "'name' is missing");
  EXPECT_FALSE(run.task().Committed());
}

TEST(Greet, IsRunAgainAfterADeadlock) {
  millrace::HandlerTest test("greet");
  int calls = 0;
  test.UseFake([&](std::string_view, std::span<const millrace::SqlValue>) {
    if (++calls == 1) return millrace::SqlAnswer{.fault = millrace::SqlAnswer::Fault::Deadlock};
    return millrace::SqlAnswer{.affected = 1};
  });
  const auto run = test.Run(R"({"name":"Ann"})");
  EXPECT_EQ(run.calls, 2u);
  EXPECT_TRUE(run.task().Committed());
}
