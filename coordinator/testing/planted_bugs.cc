#include "coordinator/testing/planted_bugs.h"

#include <algorithm>

namespace millrace::engine {
namespace {

std::string NameOf(const TreeRequest& read) {
  return (read.kind == TreeRequest::Kind::List ? "list " : "node ") + read.path;
}

bool IsPage(const TreeWrite& write) { return write.path.starts_with("/assign/"); }

}  // namespace

void SpoiledMachine::Event(const TreeEvent& event, BootTime now) {
  if (event.kind == TreeEvent::Kind::Changed) {
    stuck_.erase("list " + event.path);
    stuck_.erase("node " + event.path);
  }
  if (event.kind == TreeEvent::Kind::Connected) {
    const bool known = session_ != 0 && event.session == session_;
    const bool spoils = bug_ == (known ? PlantedBug::StaleAfterReconnect : PlantedBug::StaleAfterNewSession);
    session_ = event.session;
    for (const auto& [name, reply] : heard_) {
      if (spoils) stuck_.insert(name);
    }
  }
  inner_.Event(event, now);
}

std::optional<TreeRequest> SpoiledMachine::Next(BootTime now) {
  if (second_) return std::exchange(second_, std::nullopt);
  auto request = inner_.Next(now);
  if (!request || request->kind != TreeRequest::Kind::Write) return request;
  written_ = *request;
  if (bug_ == PlantedBug::WriteWithoutEpochCheck) {
    std::erase_if(request->writes, [](const TreeWrite& write) {
      return write.kind == TreeWrite::Kind::Check && write.path.starts_with("/epoch");
    });
  }
  return bug_ == PlantedBug::MoveInTwoMultis ? Split(std::move(*request)) : request;
}

// The first page alone; all the others follow.
std::optional<TreeRequest> SpoiledMachine::Split(TreeRequest write) {
  const auto pages = std::count_if(write.writes.begin(), write.writes.end(), IsPage);
  if (pages < 2) return write;
  second_ = write;
  const auto first = std::find_if(write.writes.begin(), write.writes.end(), IsPage);
  const std::string path = first->path;
  std::erase_if(second_->writes, [&](const TreeWrite& each) { return each.path == path; });
  std::erase_if(write.writes, [&](const TreeWrite& each) { return IsPage(each) && each.path != path; });
  return write;
}

void SpoiledMachine::Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) {
  if (request.kind != TreeRequest::Kind::Write) {
    inner_.Replied(request, Spoiled(request, reply), now);
  } else if (second_ && reply.status == TreeStatus::Ok) {
    return;  // the machine hears of the second half
  } else {
    second_.reset();
    inner_.Replied(written_, reply, now);
  }
}

const TreeReply& SpoiledMachine::Spoiled(const TreeRequest& request, const TreeReply& reply) {
  const bool answered = reply.status == TreeStatus::Ok || reply.status == TreeStatus::NotFound;
  if (bug_ == PlantedBug::None || !answered) return reply;
  const bool followed = (bug_ == PlantedBug::PlanFromStaleMembers && request.path.starts_with("/workers")) ||
                        (bug_ == PlantedBug::ConfigUnheard && request.path.starts_with("/config/"));
  const bool first_alone = followed && reply.status == TreeStatus::Ok;
  if (first_alone) return heard_.try_emplace(NameOf(request), reply).first->second;
  TreeReply& heard = heard_[NameOf(request)];
  const bool unheeded = (bug_ == PlantedBug::PauseUnheeded && request.path == "/control/pause") ||
                        (bug_ == PlantedBug::DrainUnheeded && request.path == "/control/drain");
  if (unheeded) {
    heard = reply;
    heard.children.clear();
    return heard;
  }
  if (!stuck_.contains(NameOf(request))) heard = reply;
  return heard;
}

}  // namespace millrace::engine
