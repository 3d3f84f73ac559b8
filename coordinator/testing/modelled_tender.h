// The steps of Tender: retires the dead of its host, and sweeps the heads of all groups for rows that run
// under this life without its knowing (adopted) or under a dead one (rescued).
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/testing/modelled_scanner.h"

namespace millrace::engine {

class ModelledTender {
 public:
  // `buried`: lives of processes on this host whose flight recorders have lost their owner.
  ModelledTender(MillParts parts, ModelledLane& lane, std::vector<std::string> buried)
      : parts_(parts), lane_(lane), buried_(std::move(buried)) {}

  void Run();

 private:
  using RowsByClaim = std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>>;

  void Bury();
  void Sweep();
  void SweepNext();
  void Sort(const TableName& table, const std::vector<ScanRow>& rows);
  void AdoptNext();
  void Adopted(const ClaimRequest& request, const TasksReply& adopted);
  void RescueNext();
  void Again();

  const MillParts parts_;
  ModelledLane& lane_;
  std::vector<std::string> buried_;

  // Of this sweep.
  std::shared_ptr<Lease> life_;
  std::shared_ptr<const std::set<std::string>> live_;
  std::deque<DueGroup> groups_;
  RowsByClaim own_;
  RowsByClaim orphans_;
};

}  // namespace millrace::engine
