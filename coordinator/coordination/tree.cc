#include "coordinator/coordination/tree.h"

namespace millrace::engine {

const char* ToString(TreeStatus status) {
  switch (status) {
    case TreeStatus::Ok:
      return "ok";
    case TreeStatus::NotFound:
      return "no such node";
    case TreeStatus::Exists:
      return "the node exists";
    case TreeStatus::Conflict:
      return "another version";
    case TreeStatus::Lost:
      return "connection lost";
    case TreeStatus::Expired:
      return "session expired";
    case TreeStatus::Denied:
      return "not permitted";
    case TreeStatus::Invalid:
      return "refused";
  }
  return "";
}

bool IsPath(const std::string& path) {
  if (path == "/") return true;
  return path.size() > 1 && path.front() == '/' && path.back() != '/' && path.find("//") == std::string::npos;
}

std::size_t BytesOf(const std::vector<TreeWrite>& writes) {
  std::size_t bytes = 0;
  for (const TreeWrite& write : writes) bytes += write.data.size();
  return bytes;
}

}  // namespace millrace::engine
