#include "tests/support/tree_words.h"

#include <utility>

namespace millrace::engine {

std::optional<TreeEvent> AwaitEvent(TreeSession& session, TreeEvent::Kind kind, Micros limit) {
  // Each wait has its own limit: the number of events before is small.
  for (int others = 0; others < 20; ++others) {
    auto event = session.WaitEvent(limit);
    if (!event || event->kind == kind) return event;
  }
  return std::nullopt;
}

TreeRequest Get(const std::string& path, bool watch) {
  return {.kind = TreeRequest::Kind::Get, .path = path, .watch = watch};
}
TreeRequest List(const std::string& path, bool watch) {
  return {.kind = TreeRequest::Kind::List, .path = path, .watch = watch};
}
TreeRequest Write(std::vector<TreeWrite> writes) {
  return {.kind = TreeRequest::Kind::Write, .writes = std::move(writes)};
}
TreeWrite Create(const std::string& path, const std::string& data) {
  return {.kind = TreeWrite::Kind::Create, .path = path, .data = data};
}
TreeWrite CreateEphemeral(const std::string& path, const std::string& data) {
  return {.kind = TreeWrite::Kind::CreateEphemeral, .path = path, .data = data};
}
TreeWrite Set(const std::string& path, const std::string& data, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Set, .path = path, .data = data, .version = version};
}
TreeWrite Remove(const std::string& path, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Remove, .path = path, .version = version};
}
TreeWrite Check(const std::string& path, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Check, .path = path, .version = version};
}

}  // namespace millrace::engine
