// Each incarnation draws its own number: see framework/store/README.md, "Rows that do not grow".
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/store/sql/sessions.h"
#include "framework/store/sqlite/session.h"
#include "framework/store/sqlite/store.h"

namespace millrace::engine {
namespace {

class ClaimerNumberTest : public testing::Test {
 protected:
  ClaimerNumberTest() {
    const auto store = sqlite::OpenStore({.kind = StoreUrl::Kind::Sqlite, .path = file_.path}, {});
    EXPECT_TRUE(store && (*store)->OpenSchema()->Apply({}));
  }
  ~ClaimerNumberTest() override { std::filesystem::remove_all(folder_); }

  // By a process whose chance is this one.
  Status Register(const std::string& id, std::uint64_t seed) {
    sql::Claimers none;
    return sql::OpenIncarnations(std::make_unique<sqlite::Session>(file_), none, Random(seed))
        ->Register({.id = id, .worker = "w"});
  }
  std::uint64_t NumberOf(const std::string& id) { return claimers_.ByName(db_, id).value().number; }

  static std::string MakeFolder() {
    std::string form = (std::filesystem::temp_directory_path() / "millrace_XXXXXX").string();
    return mkdtemp(form.data()) == nullptr ? std::string() : form;
  }

  const std::string folder_ = MakeFolder();
  sqlite::File file_{.path = folder_ + "/shard.db"};
  sqlite::Session db_{file_};
  sql::Claimers claimers_;
};

TEST_F(ClaimerNumberTest, OneThatSomebodyHasAlreadyIsDrawnAgain) {
  ASSERT_TRUE(Register("w.1", 1));
  ASSERT_TRUE(Register("w.2", 1)) << "it draws what the first one drew, and then another";
  EXPECT_NE(NumberOf("w.1"), sql::kNobody);
  EXPECT_NE(NumberOf("w.2"), sql::kNobody);
  EXPECT_NE(NumberOf("w.2"), NumberOf("w.1"));
  const Status again = Register("w.1", 2);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::Conflict) << "a name is another matter";
}

TEST_F(ClaimerNumberTest, NamesAndNumbersBecomeEachOther) {
  ASSERT_TRUE(Register("w.1", 1));
  const std::uint64_t number = NumberOf("w.1");
  EXPECT_LT(number, std::uint64_t{1} << 63) << "every database has it as a whole number";
  EXPECT_EQ(sql::Claimers().NameOf(db_, number).value(), "w.1");
  EXPECT_EQ(NumberOf(""), sql::kNobody);
  EXPECT_EQ(NumberOf("nobody.1"), sql::kNobody);
  EXPECT_EQ(claimers_.NameOf(db_, sql::kNobody).value(), "");
  EXPECT_EQ(claimers_.NameOf(db_, 4711).value(), "#4711") << "its incarnation is gone";
  EXPECT_EQ(NumberOf("#4711"), 4711U);
}

}  // namespace
}  // namespace millrace::engine
