// Machines on the modelled ensemble, whose messages take their time; in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/testing/journal.h"
#include "coordinator/testing/tree_driver.h"

namespace millrace::engine {

// A cluster that nobody is in yet.
class ModelledTreeTest : public testing::Test {
 protected:
  explicit ModelledTreeTest(std::uint64_t seed) : timeline_(seed) {
    for (const FixedNode& node : kFixedNodes)
      Write({{TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)}});
  }
  // At once.
  void Write(const std::vector<TreeWrite>& writes) {
    EXPECT_EQ(ensemble_.WriteNow(writes).status, TreeStatus::Ok);
  }
  void Pass(Micros time) { timeline_.RunUntil(timeline_.Now() + time); }

  Timeline timeline_;
  ModelledEnsemble ensemble_{timeline_};
  Journal journal_{timeline_, {}};
};

}  // namespace millrace::engine
