// Whatever bytes a configuration holds, it is accepted or refused with a message of whole lines; it never
// brings the process down.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "framework/config/config.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kSeed = R"({"engine":{"lease":"10s","batch":9,"on_zookeeper_loss":"continue"},
 "handlers":{"noop":{"concurrency":8,"retry":{"delays":["1m","5m"],"jitter":0.1},"options":{"a":[1,null]},
 "secrets":{"p":{"file":"x"}}}}, // comment
 "shards":{"main":{"url":"mysql://u@h:1/d","tables":["tasks"],"slices":64}},"schedules":{},"alerts":{}})";

constexpr std::string_view kPieces[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "null",
                                        "-1",
                                        "1e999",
                                        "//",
                                        "\n",
                                        "{}",
                                        "[]",
                                        "\\u0000",
                                        "\xff",
                                        "99999999999999999999",
                                        "true",
                                        "\"\""};

std::string Mutate(std::string text) {
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto cut = *rc::gen::inRange<std::size_t>(0, 12);
    const auto piece = *rc::gen::inRange<std::size_t>(0, std::size(kPieces));
    text.replace(at, cut, kPieces[piece]);
  }
  return text;
}

TEST(ConfigMutationTest, RandomChangesAreAcceptedOrRefusedWithALine) {
  EXPECT_TRUE(rc::check("mutated documents", [] {
    const auto config = ParseConfig(Mutate(std::string(kSeed)), "m.json");
    if (config) return;
    RC_ASSERT(config.error().code == ErrorCode::Invalid);
    RC_ASSERT(config.error().message.starts_with("m.json:"));
  }));
}

TEST(ConfigMutationTest, RandomBytesAreRefused) {
  EXPECT_TRUE(rc::check("bytes", [](const std::string& bytes) { RC_ASSERT(!ParseConfig(bytes, "m.json")); }));
}

}  // namespace
}  // namespace millrace::engine
