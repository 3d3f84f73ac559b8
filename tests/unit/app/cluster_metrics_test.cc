// Which process of a cluster tells what.
#include "coordinator/app/process/cluster_metrics.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ClusterMetricsTest : public testing::Test {
 protected:
  Registry registry_;
  ClusterState state_;
  ClusterMetrics metrics_{registry_, [this](Gauges&) { return state_; }};
};

TEST_F(ClusterMetricsTest, TheClustersNumbersAreToldByTheLeaderAlone) {
  state_ = {true, true, true, 2};
  metrics_.Plans();
  metrics_.Planned({3, 60, 4});
  EXPECT_THAT(registry_.Text(),
              AllOf(HasSubstr("\nmillrace_leader 1\n"), HasSubstr("\nmillrace_zookeeper_connected 1\n"),
                    HasSubstr("\nmillrace_config_refused 2\n"), HasSubstr("\nmillrace_workers 3\n"),
                    HasSubstr("\nmillrace_slices{state=\"owned\"} 60\n"),
                    HasSubstr("\nmillrace_slices{state=\"unowned\"} 4\n"),
                    HasSubstr("\nmillrace_plan_seconds_count 1\n")));
  state_.leads = false;
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("\nmillrace_leader 0\n"), Not(HasSubstr("\nmillrace_slices")),
                                      Not(HasSubstr("\nmillrace_workers"))));
  state_.leads = true;  // anew: it has not planned yet
  EXPECT_THAT(registry_.Text(),
              AllOf(HasSubstr("\nmillrace_leader 1\n"), Not(HasSubstr("\nmillrace_workers"))));
  state_ = {false, false, false, 0};
  EXPECT_THAT(registry_.Text(),
              AllOf(HasSubstr("\nmillrace_zookeeper_connected 0\n"), Not(HasSubstr("millrace_leader"))));
}

TEST_F(ClusterMetricsTest, MovesAreCountedByTheirReason) {
  metrics_.Moved(
      {{"main/tasks/1", "", "w1"}, {"main/tasks/2", "w0", "w1"}, {"main/tasks/3", "w2", "w1", true}});
  metrics_.Moved({{"main/tasks/4", "w0", "w1"}});
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("millrace_slice_moves_total{reason=\"new\"} 1\n"),
                                      HasSubstr("millrace_slice_moves_total{reason=\"orphaned\"} 2\n"),
                                      HasSubstr("millrace_slice_moves_total{reason=\"balance\"} 1\n")));
}

TEST_F(ClusterMetricsTest, AtTheEndNothingIsAskedAnyMore) {
  metrics_.End();
  EXPECT_THAT(registry_.Text(), Not(HasSubstr("millrace_zookeeper_connected")));
}

}  // namespace
}  // namespace millrace::engine
