#include "coordinator/coordination/zookeeper/replies.h"

#include <zookeeper/zookeeper.h>

namespace millrace::engine {

TreeStatus StatusOf(int code) {
  switch (code) {
    case ZOK:
      return TreeStatus::Ok;
    case ZNONODE:
      return TreeStatus::NotFound;
    case ZNODEEXISTS:
      return TreeStatus::Exists;
    case ZBADVERSION:
    case ZNOTEMPTY:
      return TreeStatus::Conflict;
    case ZNOAUTH:
    case ZAUTHFAILED:
      return TreeStatus::Denied;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:  // what every call gives once the session is over
      return TreeStatus::Expired;
    case ZBADARGUMENTS:
    case ZMARSHALLINGERROR:
    case ZINVALIDACL:
    case ZNOCHILDRENFOREPHEMERALS:
    case ZUNIMPLEMENTED:
      return TreeStatus::Invalid;
    default:
      // Connection loss and time-out, a session that moved to another server, a server that closes or is
      // overloaded: nobody knows what became of the request.
      return TreeStatus::Lost;
  }
}

bool IsAnswer(int code) {
  switch (StatusOf(code)) {
    case TreeStatus::Ok:
    case TreeStatus::NotFound:
    case TreeStatus::Exists:
    case TreeStatus::Conflict:
      return true;
    case TreeStatus::Denied:
      return code == ZNOAUTH;
    default:
      return code == ZNOCHILDRENFOREPHEMERALS;
  }
}

std::string Describe(const TreeWrite& write) {
  switch (write.kind) {
    case TreeWrite::Kind::Check:
      return "check " + write.path;
    case TreeWrite::Kind::Create:
    case TreeWrite::Kind::CreateEphemeral:
      return "create " + write.path;
    case TreeWrite::Kind::Set:
      return "set " + write.path;
    case TreeWrite::Kind::Remove:
      return "remove " + write.path;
  }
  return write.path;
}

std::string Describe(const TreeRequest& request) {
  switch (request.kind) {
    case TreeRequest::Kind::Get:
      return "get " + request.path;
    case TreeRequest::Kind::List:
      return "list " + request.path;
    case TreeRequest::Kind::Write:
      return request.writes.size() == 1 ? Describe(request.writes[0])
                                        : std::to_string(request.writes.size()) + " writes";
  }
  return request.path;
}

}  // namespace millrace::engine
