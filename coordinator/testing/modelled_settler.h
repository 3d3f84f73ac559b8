// The steps of Settler: settles what has ended, in batches of one life, until every outcome is known.
#pragma once

#include <deque>
#include <vector>

#include "coordinator/testing/mill_parts.h"

namespace millrace::engine {

struct ModelledLanding {
  Settlement settlement;
  std::string incarnation;
  bool verify = false;
};

class ModelledSettler {
 public:
  explicit ModelledSettler(MillParts parts) : parts_(parts) {}

  void Land(ModelledLanding landing);

 private:
  void TakeBatch();
  void Verify();
  void Settle();
  void TryAgain();
  void Known(const ModelledLanding& landing);
  std::vector<Settlement> Settlements(bool verify) const;

  const MillParts parts_;
  std::deque<ModelledLanding> queue_;
  std::vector<ModelledLanding> batch_;  // of one life; empty: it rests
  bool woken_ = false;
  Micros pause_{0};
};

}  // namespace millrace::engine
