#include "coordinator/leader/slice_kinds.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::Optional;

class SliceKindsTest : public testing::Test {
 protected:
  SliceKinds Kinds() { return {tables_, groups_, workers_}; }

  std::vector<PlannedTable> tables_{{"east", "tasks", 64}, {"west", "tasks", 64}};
  std::vector<HandlerGroup> groups_{{"default", {kEveryOther}}};
  std::map<std::string, WorkerDocument> workers_;
};

TEST_F(SliceKindsTest, WithoutLimitsThereIsOneKindAGroup) {
  groups_ = {{"a", {"a"}}, {"b", {"b"}}};
  workers_["w1"].limits.handlers = {{"a"}};
  SliceKinds kinds = Kinds();
  EXPECT_EQ(kinds.Of(0, 0, 0), kinds.Of(1, 0, 63));
  EXPECT_NE(kinds.Of(0, 0, 0), kinds.Of(0, 1, 0));
  EXPECT_THAT(kinds.AcceptedBy(workers_["w1"].limits), Optional(ElementsAre(kinds.Of(0, 0, 0))));
  EXPECT_EQ(kinds.AcceptedBy(WorkerLimits{}), std::nullopt);
}

TEST_F(SliceKindsTest, WorkersWithTheSameLimitsTellNoMoreApartThanOne) {
  for (int i = 0; i < 200; ++i) workers_["w" + std::to_string(i)].limits.load_balance = {{0, 1, 40}};
  SliceKinds kinds = Kinds();
  EXPECT_EQ(kinds.Of(0, 0, 0), kinds.Of(1, 0, 40));
  EXPECT_EQ(kinds.Of(0, 0, 2), kinds.Of(1, 0, 63));
  EXPECT_NE(kinds.Of(0, 0, 0), kinds.Of(0, 0, 2));
  EXPECT_THAT(kinds.AcceptedBy(workers_["w7"].limits), Optional(ElementsAre(kinds.Of(0, 0, 1))));
}

TEST_F(SliceKindsTest, TablesThatSomeLimitNamesAreOfAKindOfTheirOwn) {
  workers_["w1"].limits.shards = {{"east"}};
  SliceKinds kinds = Kinds();
  const GroupIndex east = kinds.Of(0, 0, 5);
  EXPECT_NE(kinds.Of(1, 0, 5), east);
  EXPECT_THAT(kinds.AcceptedBy(workers_["w1"].limits), Optional(ElementsAre(east)));
}

TEST_F(SliceKindsTest, AWorkerThatMayHaveNothingAcceptsNoKind) {
  workers_["w1"].limits.load_balance = {std::vector<std::uint32_t>()};
  SliceKinds kinds = Kinds();
  (void)kinds.Of(0, 0, 0);
  EXPECT_THAT(kinds.AcceptedBy(workers_["w1"].limits), Optional(testing::IsEmpty()));
}

}  // namespace
}  // namespace millrace::engine
