#include "handlers/exec/process.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace exec_handler {
namespace {

constexpr std::size_t kAtOnce = 64 * 1024;

// A stream that gives these pieces, and then is empty.
class Stream {
 public:
  explicit Stream(std::deque<std::string> pieces) : pieces_(std::move(pieces)) {}

  ssize_t Read(char* buffer, std::size_t size) {
    if (pieces_.empty()) {
      errno = EAGAIN;
      return -1;
    }
    const std::size_t got = pieces_.front().copy(buffer, size);
    pieces_.pop_front();
    return static_cast<ssize_t>(got);
  }

 private:
  std::deque<std::string> pieces_;
};

bool DrainAll(Stream& stream, std::string& taken) {
  return Drain([&](char* buffer, std::size_t size) { return stream.Read(buffer, size); }, kAtOnce,
               [&](std::string_view more) { taken += more; });
}

TEST(DrainTest, AStreamThatIsNeverEmptyIsLeftForAMoment) {
  Stream stream(std::deque<std::string>(1000, std::string(16 * 1024, 'x')));
  std::string taken;
  EXPECT_TRUE(DrainAll(stream, taken));
  EXPECT_EQ(taken.size(), kAtOnce);
}

TEST(DrainTest, WhatIsThereIsTakenAndTheEndIsTold) {
  Stream stream({"a", "b"});
  std::string taken;
  EXPECT_TRUE(DrainAll(stream, taken));
  EXPECT_EQ(taken, "ab");
  Stream ended({"c", ""});
  EXPECT_FALSE(DrainAll(ended, taken));
  EXPECT_EQ(taken, "abc");
}

}  // namespace
}  // namespace exec_handler
