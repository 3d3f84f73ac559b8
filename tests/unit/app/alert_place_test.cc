#include "coordinator/app/process/alert_place.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/local/local_control_plane.h"
#include "framework/config/config.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;

const std::vector<TableInfo> kTables = {{"tasks_000", 4}, {"tasks_001", 4}};

AlertPlace Place(std::unordered_set<std::string> slices,
                 std::map<std::string, std::vector<std::string>> groups, std::vector<std::string> types) {
  return PlaceOf(std::make_shared<const Ownership>(std::move(slices), groups,
                                                   std::vector<Limit<std::string>>{std::move(types)},
                                                   std::vector<std::string>{"main/tasks_000/3"}));
}

TEST(AlertPlaceTest, AMessageGoesWhereSomebodyWorks) {
  const AlertPlace place = Place({"main/tasks_001/2", "main/tasks_001/3"}, {}, {kMailType, "noop"});
  const auto spot = place.spot("main", kMailType, kTables);
  ASSERT_TRUE(spot);
  EXPECT_EQ(spot->table, TableName("tasks_001"));
  EXPECT_EQ(spot->slice, 2u);
  EXPECT_FALSE(place.spot("other", kMailType, kTables));
  EXPECT_TRUE(place.runs("noop"));
  EXPECT_FALSE(place.runs("exec"));
  EXPECT_THAT(*place.unowned, ElementsAre("main/tasks_000/3"));
}

TEST(AlertPlaceTest, ATypeThatNobodyRunsHasNoPlace) {
  EXPECT_FALSE(Place({"main/tasks_000/0"}, {}, {"noop"}).spot("main", kMailType, kTables));
}

TEST(AlertPlaceTest, AMessageGoesIntoASliceOfItsGroup) {
  const std::map<std::string, std::vector<std::string>> groups = {{"a", {"exec"}},
                                                                  {"b", {"noop", kMailType}}};
  const AlertPlace place =
      Place({"main/tasks_000/0@a", "main/tasks_000/1@b"}, groups, {"exec", kMailType, "noop"});
  EXPECT_EQ(place.spot("main", kMailType, kTables)->slice, 1u);
  EXPECT_EQ(place.spot("main", "exec", kTables)->slice, 0u);
}

TEST(AlertPlaceTest, ATypeWhoseHandlerDoesNotOpenIsRunByNobody) {
  auto control = LocalControlPlane::Make({}, Config{});
  ASSERT_TRUE(control);
  LocalAlertPlace place(*control, [](const Config&) { return std::vector<std::string>{"exec", "noop"}; });
  EXPECT_FALSE(place.Now()) << "nobody has told yet";
  WorkerStatus status;
  place.Take(status);
  EXPECT_TRUE(place.Now()->runs("exec"));
  EXPECT_FALSE(place.Now()->runs("typo"));
  status.unopened = {{"exec", "'program' is missing"}};
  place.Take(status);
  EXPECT_FALSE(place.Now()->runs("exec"));
  EXPECT_TRUE(place.Now()->runs("noop"));
  LocalAlertPlace one_of_several(*control, nullptr);
  one_of_several.Take(status);
  EXPECT_FALSE(one_of_several.Now()->runs) << "what others run is not known";
}

TEST(AlertPlaceTest, ATypeThatComesWithAChangedConfigurationIsRun) {
  auto control = LocalControlPlane::Make({}, Config{});
  ASSERT_TRUE(control);
  LocalAlertPlace place(*control, [](const Config& config) {
    std::vector<std::string> types;
    for (const auto& [type, handler] : config.handlers) types.push_back(type);
    return types;
  });
  place.Take({});
  EXPECT_FALSE(place.Now()->runs("call_bank"));
  Config changed;
  changed.handlers["call_bank"];
  control->SetConfig(changed);
  EXPECT_TRUE(place.Now()->runs("call_bank"));
}

}  // namespace
}  // namespace millrace::engine
