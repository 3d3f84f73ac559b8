#include "coordinator/app/input/input_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

InputRules Rules(const std::string& key_column) {
  InputRules rules;
  rules.defaults.handler = "noop";
  rules.key_column = key_column;
  return rules;
}

Result<std::unique_ptr<InputRows>> Csv(const std::string& text, const InputRules& rules) {
  return ReadCsv(std::make_unique<std::istringstream>(text), "f.csv", rules);
}
Result<std::unique_ptr<InputRows>> Csv(const std::string& text, const std::string& key_column) {
  return Csv(text, Rules(key_column));
}

// A file of its own with these bytes.
class InputFile {
 public:
  InputFile(const std::string& ending, const std::string& bytes) {
    path_ += ending;
    const int file = mkstemps(path_.data(), static_cast<int>(ending.size()));
    EXPECT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(file);
  }
  ~InputFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/millrace-input-XXXXXX";
};

// Gives its text, and then fails as a file does on a broken disk.
class BrokenBuffer final : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;

 private:
  int_type underflow() override {
    const int_type next = std::stringbuf::underflow();
    if (next == traits_type::eof()) throw std::ios_base::failure("error reading the file");
    return next;
  }
};
class BrokenInput final : public std::istream {
 public:
  explicit BrokenInput(const std::string& text) : std::istream(nullptr), buffer_(text) { rdbuf(&buffer_); }

 private:
  BrokenBuffer buffer_;
};

// A line of this many bytes, which stand nowhere at once, and then a text.
class LongLine final : public std::istream {
 public:
  LongLine(std::size_t bytes, std::string then) : std::istream(nullptr), buffer_(bytes, std::move(then)) {
    rdbuf(&buffer_);
  }

 private:
  class Buffer final : public std::streambuf {
   public:
    Buffer(std::size_t bytes, std::string then) : left_(bytes), then_(std::move(then)) {}

   private:
    int_type underflow() override {
      const bool last = left_ == 0;
      if (last && given_) return traits_type::eof();
      given_ = last;
      std::string& text = last ? then_ : page_;
      left_ -= last ? 0 : std::min(left_, page_.size());
      setg(text.data(), text.data(), text.data() + text.size());
      return traits_type::to_int_type(text.front());
    }
    std::size_t left_;
    std::string then_;
    std::string page_ = std::string(4096, '7');
    bool given_ = false;
  };
  Buffer buffer_;
};

TEST(InputRowsTest, ALineWithoutEndIsRefusedByItsNumberAndTheNextIsRead) {
  constexpr std::size_t kLong = 256 * 1024 * 1024;
  const auto csv = ReadCsv(std::make_unique<std::istringstream>("id\n" + std::string(2 << 20, '7') + "\n8\n"),
                           "f.csv", Rules("id"));
  const auto jsonl = ReadJsonl(std::make_unique<LongLine>(kLong, "\n{\"id\":8}\n"), Rules("id"));
  ASSERT_TRUE(csv);
  std::size_t line = 2;  // behind the header
  for (InputRows* rows : {csv->get(), jsonl.get()}) {
    const auto first = rows->Next();
    ASSERT_TRUE(first && !first->task);
    EXPECT_EQ(first->line, line--);
    EXPECT_THAT(first->task.error().message, HasSubstr("longer than 1 MiB"));
    EXPECT_EQ(rows->Next()->task->biz_key, "8");
    EXPECT_FALSE(rows->Next());
  }
}

TEST(InputRowsTest, TheLastLineNeedsNoLineFeedAndALongOneAtTheEndIsRefused) {
  const auto plain =
      ReadJsonl(std::make_unique<std::istringstream>("{\"id\":1}\r\n\n{\"id\":2}"), Rules("id"));
  EXPECT_EQ(plain->Next()->task->biz_key, "1");
  EXPECT_EQ(plain->Next()->task->biz_key, "2");
  EXPECT_FALSE(plain->Next());
  const auto cut = ReadJsonl(std::make_unique<std::istringstream>(std::string(2 << 20, '7')), Rules("id"));
  EXPECT_THAT(cut->Next()->task.error().message, HasSubstr("longer than 1 MiB"));
  EXPECT_FALSE(cut->Next());
}

TEST(InputRowsTest, WhatCannotBeReadToItsEndIsNotTakenForItsEnd) {
  const auto csv = ReadCsv(std::make_unique<BrokenInput>("id\n1\n2"), "f.csv", Rules("id"));
  const auto jsonl = ReadJsonl(std::make_unique<BrokenInput>("{\"id\":1}\n{\"id\":"), Rules("id"));
  ASSERT_TRUE(csv);
  for (InputRows* rows : {csv->get(), jsonl.get()}) {
    EXPECT_EQ(rows->Next()->task->biz_key, "1");
    const auto rest = rows->Next();
    ASSERT_TRUE(rest && !rest->task);
    EXPECT_THAT(rest->task.error().message, HasSubstr("can't be read from here on"));
    EXPECT_FALSE(rows->Next());
  }
}

TEST(InputRowsTest, ARaggedRowIsBadAndTheOthersAreGood) {
  auto rows = Csv("id,name\n1,a\n2\n3,c,d\n4,e\n", "id");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)->Next()->task->biz_key, "1");
  const auto ragged = (*rows)->Next();
  EXPECT_EQ(ragged->line, 3u);
  EXPECT_THAT(ragged->task.error().message, HasSubstr("1 field where the header has 2"));
  EXPECT_FALSE((*rows)->Next()->task);
  EXPECT_EQ((*rows)->Next()->task->params, R"({"id":4,"name":"e"})");
  EXPECT_FALSE((*rows)->Next());
}

TEST(InputRowsTest, AMissingKeyColumnIsRefusedWithTheNearest) {
  EXPECT_THAT(Csv("payment_id,x\n", "paymentid").error().message, HasSubstr("did you mean 'payment_id'"));
  EXPECT_THAT(Csv("a,b\n", "zzzzzzz").error().message, HasSubstr("the columns are a, b"));
}

TEST(InputRowsTest, ARefusalQuotesNoMoreOfTheFirstLineThanCanBeRead) {
  const std::string endless(60'000, 'x');
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "column" + std::to_string(i) + ",";
  for (const auto& [text, key] : {std::pair(endless + "\n", "zzzzzzz"), std::pair(many + "last\n", "zzzzzzz"),
                                  std::pair(endless + "," + endless + "\n", "")}) {
    EXPECT_LT(Csv(text, key).error().message.size(), 4096);
  }
  EXPECT_LT((*Csv(endless + ",x\n\xff,1\n", ""))->Next()->task.error().message.size(), 4096);
  EXPECT_LT((*Csv(endless + ",x\n,1\n", endless))->Next()->task.error().message.size(), 4096);
}

TEST(InputRowsTest, AnEmptyKeyIsABadRow) {
  EXPECT_THAT((*Csv("id,x\n,1\n", "id"))->Next()->task.error().message,
              HasSubstr("key column 'id' is empty"));
}

TEST(InputRowsTest, AHeaderThatNamesNothingIsRefused) {
  EXPECT_THAT(Csv("", "").error().message, HasSubstr("the file is empty"));
  EXPECT_THAT(Csv("a,a\n", "").error().message, HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(Csv("a,\n", "").error().message, HasSubstr("a column has no name"));
}

TEST(InputRowsTest, AFileWithCarriageReturnsAloneIsNoHeaderWithoutRows) {
  EXPECT_THAT(Csv("id,amount\r1,5\r2,7\r", "id").error().message, HasSubstr("end each line by LF or CRLF"));
}

TEST(InputRowsTest, APrefixGoesBeforeEveryKeyAndBeforeNothingElse) {
  InputRules rules = Rules("id");
  rules.key_prefix = "may-";
  EXPECT_EQ((*Csv("id\n7\n", rules))->Next()->task->biz_key, "may-7");
  rules.key_column.clear();
  const auto jsonl =
      ReadJsonl(std::make_unique<std::istringstream>("{\"params\":{},\"key\":\"k\"}\n{\"a\":1}\n"), rules);
  EXPECT_EQ(jsonl->Next()->task->biz_key, "may-k");
  EXPECT_THAT(jsonl->Next()->task.error().message, HasSubstr("no key for --key-prefix to go before"));
  EXPECT_THAT(Csv("id\n7\n", rules).error().message, HasSubstr("--key-prefix goes with --key-column"));
  rules.key_prefix = std::string(kMaxKey, 'p');
  rules.key_column = "id";
  EXPECT_THAT((*Csv("id\n7\n", rules))->Next()->task.error().message, HasSubstr("longer than 190 bytes"));
}

TEST(InputRowsTest, TextColumnsAreColumnsThatThereAre) {
  InputRules rules = Rules("");
  rules.text_columns = {"zip"};
  EXPECT_EQ((*Csv("zip,n\n12345,1\n", rules))->Next()->task->params, R"({"zip":"12345","n":1})");
  EXPECT_THAT(Csv("zipp,n\n", rules).error().message, HasSubstr("did you mean 'zipp'"));
  const InputFile jsonl(".jsonl", "{}\n");
  EXPECT_THAT(OpenInputFile(jsonl.path(), InputFormat::ByName, rules).error().message,
              HasSubstr("--text-columns is for CSV"));
}

TEST(InputRowsTest, AColumnMaySayWhenItsRowExpires) {
  InputRules rules = Rules("");
  rules.expires_column = "until";
  rules.defaults.expires_in = std::chrono::hours(1);
  auto rows = Csv("n,until\n1,2999-12-01T02:00:00Z\n2,\n3,tomorrow\n4,2020-01-01T00:00:00Z\n", rules);
  ASSERT_TRUE(rows) << rows.error().message;
  const auto own = (*rows)->Next()->task;
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_TRUE(own->expires_at);
  EXPECT_FALSE(own->expires_in);
  EXPECT_EQ(own->params, R"({"n":1,"until":"2999-12-01T02:00:00Z"})");
  const auto others = (*rows)->Next()->task;
  ASSERT_TRUE(others) << others.error().message;
  EXPECT_FALSE(others->expires_at);
  EXPECT_EQ(others->expires_in, std::chrono::hours(1));
  EXPECT_THAT((*rows)->Next()->task.error().message, HasSubstr("the expiry column 'until'"));
  EXPECT_THAT((*rows)->Next()->task.error().message, HasSubstr("expires_at"));
  EXPECT_THAT(Csv("n,utnil\n", rules).error().message, HasSubstr("'until' for --expires-column"));
  const InputFile lines(".jsonl", "{}\n");
  EXPECT_THAT(OpenInputFile(lines.path(), InputFormat::ByName, rules).error().message,
              HasSubstr("--expires-column is for CSV"));
}

TEST(InputRowsTest, TheFormatIsTheOneThatIsNamedOrThatOfTheFilesName) {
  const InputFile plain("", "{\"a\":1}\n");
  EXPECT_THAT(OpenInputFile(plain.path(), InputFormat::ByName, Rules("")).error().message,
              HasSubstr("--format csv or --format jsonl"));
  EXPECT_EQ((*OpenInputFile(plain.path(), InputFormat::Jsonl, Rules("")))->Next()->task->params, "{\"a\":1}");
  const InputFile named(".jsonl", "a\n1\n");
  EXPECT_EQ((*OpenInputFile(named.path(), InputFormat::Csv, Rules("")))->Next()->task->params, "{\"a\":1}");
}

TEST(InputRowsTest, ANameThatIsNotUtf8IsRefusedAsACellIs) {
  EXPECT_THAT(Csv("a\xff,b\n1,2\n", "").error().message, HasSubstr(":1: the text is not UTF-8"));
}

TEST(InputRowsTest, OtherSeparatorsAreNotTakenForOneColumn) {
  for (const char* text : {"id;amount\n1;2\n", "id\tamount\n1\t2\n"}) {
    EXPECT_THAT(Csv(text, "").error().message, HasSubstr("must be separated by commas"));
  }
  EXPECT_TRUE(Csv("a;b,c\n1,2\n", ""));
}

TEST(InputRowsTest, Utf16IsCalledByItsName) {
  using namespace std::string_literals;
  for (const char* ending : {".csv", ".jsonl"}) {
    for (const std::string& bytes : {"\xFF\xFEi\0d\0\n\0"s, "\xFE\xFF\0i\0d\0\n"s, "\0i\0d\0\n"s}) {
      const InputFile file(ending, bytes);
      const auto rows = OpenInputFile(file.path(), InputFormat::ByName, Rules(""));
      ASSERT_FALSE(rows) << ending;
      EXPECT_THAT(rows.error().message, HasSubstr("UTF-16"));
    }
  }
  EXPECT_THAT(Csv("i\0d\0\n\0"s, "").error().message, HasSubstr("UTF-16"));
  const auto jsonl = ReadJsonl(std::make_unique<std::istringstream>("{\0}\0\n\0"s), Rules(""));
  EXPECT_THAT(jsonl->Next()->task.error().message, HasSubstr("UTF-16"));
}

}  // namespace
}  // namespace millrace::engine
