#include "framework/base/escape.h"

#include <gtest/gtest.h>

#include "any_text.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

void AppendUtf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// What a reader does: the text that was escaped.
std::string ReadBack(const std::string& escaped) {
  std::string text;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '\\') {
      text += escaped[i];
      continue;
    }
    const char kind = escaped.at(++i);
    if (kind == 'n') text += '\n';
    if (kind == 't') text += '\t';
    if (kind == 'r') text += '\r';
    if (kind == '\\') text += '\\';
    if (kind == 'x') {
      text += static_cast<char>(std::stoul(escaped.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    if (kind == 'u') {
      const std::size_t end = escaped.find('}', i);
      AppendUtf8(text, static_cast<unsigned>(std::stoul(escaped.substr(i + 2, end - i - 2), nullptr, 16)));
      i = end;
    }
  }
  return text;
}

TEST(EscapeTest, WhateverComesInNothingThatATerminalObeysComesOutAndItCanBeReadBack) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = *AnyText();
    const std::string escaped = Escape(text);
    RC_ASSERT(HoldsNothingUnsafe(escaped));
    RC_ASSERT(IsUtf8(escaped));
    RC_ASSERT(ReadBack(escaped) == text);
  }));
}

TEST(EscapeTest, ASentenceThatWasEscapedStaysAsItIs) {
  EXPECT_TRUE(rc::check([] {
    const std::string once = Escape(*AnyText(), Backslash::Kept);
    RC_ASSERT(HoldsNothingUnsafe(once));
    RC_ASSERT(IsUtf8(once));
    RC_ASSERT(Escape(once, Backslash::Kept) == once);
  }));
}

TEST(EscapeTest, EachKindLooksAsItIsWrittenElsewhere) {
  EXPECT_EQ(Escape("a\nb\tc\rd\x1b[0m\x7f"), R"(a\nb\tc\rd\x1b[0m\x7f)");
  EXPECT_EQ(Escape("\xC2\x9B"
                   "2J \xE2\x80\xAE \xE2\x81\xA6 \xD8\x9C \xE2\x80\xA8"),
            R"(\u{9b}2J \u{202e} \u{2066} \u{61c} \u{2028})");
  EXPECT_EQ(Escape("\xff\xc3"), R"(\xff\xc3)");
  EXPECT_EQ(Escape(R"(C:\new)"), R"(C:\\new)");
  EXPECT_EQ(Escape("grün – ok, 日本, שלום"), "grün – ok, 日本, שלום");
}

TEST(EscapeJsonTest, StaysTheSameJson) {
  EXPECT_EQ(EscapeJson("{\"a\": \"\\n \xC2\x9B \xE2\x80\xAE \x7f é\"}"),
            R"({"a": "\n \u009b \u202e \u007f é"})");
  EXPECT_EQ(EscapeJson("{\n\t\"a\":\r\n1}"), "{\n \"a\": \n1}");
}

}  // namespace
}  // namespace millrace::engine
