#include "coordinator/testing/planted_bugs.h"

namespace millrace {

std::optional<TreeRequest> SpoiledMachine::Next(BootTime now) {
  auto request = inner_.Next(now);
  if (!request) return request;
  asked_ = *request;
  if (bug_ == PlantedBug::WriteWithoutEpochCheck) {
    std::erase_if(request->writes, [](const TreeWrite& write) {
      return write.kind == TreeWrite::Kind::Check && write.path == "/epoch";
    });
  }
  return request;
}

void SpoiledMachine::Replied(const TreeRequest&, const TreeReply& reply, BootTime now) {
  const bool about_workers = asked_.kind != TreeRequest::Kind::Write && asked_.path.starts_with("/workers");
  if (bug_ != PlantedBug::PlanFromStaleMembers || !about_workers || reply.status != TreeStatus::Ok) {
    inner_.Replied(asked_, reply, now);
    return;
  }
  TreeReply& first = first_replies_.try_emplace(asked_.path, reply).first->second;
  inner_.Replied(asked_, first, now);
}

}  // namespace millrace
