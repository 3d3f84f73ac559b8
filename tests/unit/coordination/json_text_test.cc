#include "coordinator/coordination/json_text.h"

#include <gtest/gtest.h>

#include "framework/base/utf8.h"
#include "tests/unit/base/any_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

TEST(JsonTextTest, WhateverItHoldsItIsJsonThatNoTerminalObeys) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = *AnyText();
    const ordered_json json{{"key", text}, {"list", {text, 1}}, {text, "name"}};
    const std::string written = JsonText(json);
    RC_ASSERT(HoldsNothingUnsafe(written));
    RC_ASSERT(IsUtf8(written));
    const ordered_json read = ordered_json::parse(written);
    RC_ASSERT(read["list"].size() == 2U);
    if (IsUtf8(text)) RC_ASSERT(read == json);
  }));
}

TEST(JsonTextTest, ATextThatIsNoUtf8ShowsItsBytes) {
  EXPECT_EQ(JsonText({{"k", "a\xff"}, {"ok", "é"}}), R"({"k":"a\\xff","ok":"é"})");
}

}  // namespace
}  // namespace millrace::engine
