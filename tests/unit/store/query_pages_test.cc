// What the contract suite can't cause: a server that does not answer.
#include "framework/store/query_pages.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

// Fails each statement.
class FailingTransaction final : public TaskTransaction {
 public:
  FailingTransaction(ErrorCode code, int& statements) : code_(code), statements_(statements) {}

  Result<SqlResult> Execute(std::string_view, std::span<const SqlValue>) override {
    ++statements_;
    return Fail(code_, "no answer");
  }
  Result<SubmitReport> Submit(const TableName&, std::span<const NewTask>) override { return SubmitReport(); }
  TransactionState state() const override { return TransactionState::Idle; }
  Status Mark() override { return {}; }
  Status Undo() override { return {}; }
  CommitReport Commit(const std::string&, std::span<const Settlement>) override { return {}; }
  void Rollback() override {}

 private:
  const ErrorCode code_;
  int& statements_;
};

int StatementsOfAPage(ErrorCode code) {
  int statements = 0;
  QueryPages pages(std::make_unique<FailingTransaction>(code, statements), "SELECT 1 AS id", {"id"}, 10);
  const auto page = pages.Next();
  EXPECT_FALSE(page);
  if (!page) {
    EXPECT_EQ(page.error().code, code);
  }
  return statements;
}

TEST(QueryPagesTest, AServerThatDoesNotAnswerIsNotAskedForTheColumnsToo) {
  EXPECT_EQ(StatementsOfAPage(ErrorCode::Unavailable), 1);
  EXPECT_EQ(StatementsOfAPage(ErrorCode::Cancelled), 1);
  EXPECT_EQ(StatementsOfAPage(ErrorCode::Invalid), 2);
}

}  // namespace
}  // namespace millrace::engine
