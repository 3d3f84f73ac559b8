#include "coordinator/app/input/input_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>

namespace millrace::engine {
namespace {

// Numbers; `on_row` is called before each.
class Numbers final : public InputRows {
 public:
  Numbers(std::size_t count, std::function<void(std::size_t)> on_row)
      : count_(count), on_row_(std::move(on_row)) {}
  std::optional<InputRow> Next() override {
    if (next_ == count_) return std::nullopt;
    on_row_(++next_);
    return InputRow{next_, NewTask{.handler = "noop"}};
  }

 private:
  const std::size_t count_;
  const std::function<void(std::size_t)> on_row_;
  std::size_t next_ = 0;
};

std::unique_ptr<InputRows> Ahead(std::size_t count, std::function<void(std::size_t)> on_row) {
  auto rows = ReadAhead(std::make_unique<Numbers>(count, std::move(on_row)));
  EXPECT_TRUE(rows) << rows.error().message;
  return std::move(*rows);
}

TEST(ReadAheadTest, RowsComeAllAndInTheirOrder) {
  const auto rows = Ahead(12'345, [](std::size_t) {});
  for (std::size_t i = 1; i <= 12'345; ++i) {
    const auto row = rows->Next();
    ASSERT_TRUE(row);
    ASSERT_EQ(row->line, i);
  }
  EXPECT_FALSE(rows->Next());
  EXPECT_FALSE(rows->Next());
}

TEST(ReadAheadTest, ItReadsNoFurtherAheadThanSomeThousands) {
  std::latch full(1);
  std::atomic<std::size_t> read{0};
  const auto rows = Ahead(1'000'000, [&](std::size_t row) {
    read = row;
    if (row == 4'500) full.count_down();
  });
  full.wait();
  ASSERT_TRUE(rows->Next());
  EXPECT_LE(read.load(), 5'000u);
}

TEST(ReadAheadTest, WhatReadingThrowsIsThrownToWhoTakesTheRows) {
  const auto rows = Ahead(2'000, [](std::size_t row) {
    if (row == 1'700) throw std::runtime_error("the disk is gone");
  });
  for (int i = 0; i < 1'500; ++i) ASSERT_TRUE(rows->Next());
  EXPECT_THROW((void)rows->Next(), std::runtime_error);
}

TEST(ReadAheadTest, WhoGoesBeforeTheEndWaitsForNoInput) {
  auto never = std::make_shared<std::latch>(1);  // the reader's, too: it outlives this test
  auto rows = Ahead(10, [never](std::size_t row) {
    if (row == 5) never->wait();
  });
  rows.reset();
  never->count_down();
}

// Standard input that nobody types into.
TEST(ReadAheadTest, AStopEndsTheWaitForARowThatDoesNotCome) {
  std::latch end(1);
  std::atomic<bool> stopped = false;
  {
    auto rows = ReadAhead(std::make_unique<Numbers>(1,
                                                    [&](std::size_t) {
                                                      stopped = true;
                                                      end.wait();
                                                    }),
                          [&] { return stopped.load(); });
    ASSERT_TRUE(rows);
    EXPECT_FALSE((*rows)->Next());
    end.count_down();
  }
}

}  // namespace
}  // namespace millrace::engine
