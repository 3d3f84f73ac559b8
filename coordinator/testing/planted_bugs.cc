#include "coordinator/testing/planted_bugs.h"

namespace millrace::engine {

std::optional<TreeRequest> SpoiledMachine::Next(BootTime now) {
  auto request = inner_.Next(now);
  if (!request || request->kind != TreeRequest::Kind::Write) return request;
  written_ = *request;
  if (bug_ == PlantedBug::WriteWithoutEpochCheck) {
    std::erase_if(request->writes, [](const TreeWrite& write) {
      return write.kind == TreeWrite::Kind::Check && write.path.starts_with("/epoch");
    });
  }
  return request;
}

void SpoiledMachine::Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) {
  if (request.kind == TreeRequest::Kind::Write) {
    inner_.Replied(written_, reply, now);
    return;
  }
  const bool about_workers = request.path.starts_with("/workers");
  if (bug_ != PlantedBug::PlanFromStaleMembers || !about_workers || reply.status != TreeStatus::Ok) {
    inner_.Replied(request, reply, now);
    return;
  }
  TreeReply& first = first_replies_.try_emplace(request.path, reply).first->second;
  inner_.Replied(request, first, now);
}

}  // namespace millrace::engine
