#include "framework/http/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// printf %s TOKEN | sha256sum
constexpr const char* kHashOfSecret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
constexpr const char* kHashOfOther = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa";

std::string Refusal(const std::string& text) {
  const auto tokens = Tokens::Parse(text, "tokens");
  return tokens ? "" : tokens.error().message;
}

TEST(TokensTest, ATokenHasTheRoleOfItsLine) {
  const std::string text =
      std::string("# ours\n\nview prometheus ") + kHashOfSecret + "\n  admin ann\t" + kHashOfOther;
  const auto tokens = Tokens::Parse(text, "tokens");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->RoleOf("secret"), Role::View);
  EXPECT_EQ(tokens->RoleOf("other"), Role::Admin);
}

TEST(TokensTest, WhatIsInNoLineHasNone) {
  const auto tokens = Tokens::Parse(std::string("view a ") + kHashOfSecret, "tokens");
  ASSERT_TRUE(tokens);
  for (const char* wrong : {"", "Secret", "secret ", "secret\n", kHashOfSecret}) {
    EXPECT_EQ(tokens->RoleOf(wrong), std::nullopt) << wrong;
  }
}

TEST(TokensTest, EveryBadLineIsNamed) {
  const std::string text = std::string("root a ") + kHashOfSecret + "\nview b\nview c 12ab\nview d " +
                           kHashOfSecret + " more\nview e " + kHashOfSecret + "\nview f " + kHashOfSecret +
                           "\nadmin e " + kHashOfOther;
  EXPECT_THAT(Refusal(text),
              AllOf(HasSubstr("tokens:1: 'root' is no role"), HasSubstr("tokens:2: write three words"),
                    HasSubstr("tokens:3: the third word is no SHA-256"), HasSubstr("tokens:4: write three"),
                    HasSubstr("tokens:6: another line"), HasSubstr("tokens:7: another line")));
}

TEST(TokensTest, TheNearestRoleIsNamed) {
  EXPECT_THAT(Refusal(std::string("operator a ") + kHashOfSecret), HasSubstr("did you mean 'operate'?"));
}

TEST(TokensTest, NoMessageShowsAHash) {
  EXPECT_THAT(Refusal(std::string("view a ") + kHashOfSecret + "0"), Not(HasSubstr("2bb80d")));
}

TEST(TokensTest, AFileWithoutATokenIsRefused) {
  EXPECT_THAT(Refusal("# nobody yet\n"), HasSubstr("there is no token in it"));
}

}  // namespace
}  // namespace millrace::engine
