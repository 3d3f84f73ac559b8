// The steps of Scanner, and of the MySQL store's Resolve: resolves what it does not know of its claims, reads
// the due map, scans the groups in their order, claims what the lane has room for.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "coordinator/testing/modelled_lane.h"
#include "framework/worker/scan_cursor.h"

namespace millrace::engine {

class ModelledScanner {
 public:
  ModelledScanner(MillParts parts, ModelledLane& lane) : parts_(parts), lane_(lane) {}

  void Round();

 private:
  // A claim whose outcome is not known.
  struct Unknown {
    ClaimRequest request{.table = CompactShard::kTable};
    std::shared_ptr<Lease> life;
    bool half_resolved = false;  // some of its rows may have been raised further without anybody knowing
  };

  void ResolveNext();
  void LookUp();
  void Adopt(std::vector<ScanRow> rows);
  void ResolveLater(bool half_resolved);
  void Look();
  void Order(const DueMap& map);
  void ScanNext();
  void Pick(const DueGroup& group, const ScanRequest& request, const std::vector<ScanRow>& rows);
  void ClaimNext();
  void Claimed(const ClaimRequest& request, const std::vector<Task>& tasks);
  void Again(Micros wait);

  const MillParts parts_;
  ModelledLane& lane_;
  ScanCursors cursors_;
  std::uint64_t turn_ = 0;
  std::vector<Unknown> unknown_;

  // Under way.
  Unknown resolving_;
  std::vector<Task> adopted_;

  // Of this round.
  std::shared_ptr<Lease> life_;
  Micros wait_{0};
  std::deque<DueGroup> groups_;
  std::size_t wanted_ = 0;
  std::map<std::uint32_t, std::vector<std::uint64_t>> found_;  // ids by the attempt seen
};

}  // namespace millrace::engine
