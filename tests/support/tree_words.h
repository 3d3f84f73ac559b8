// Requests to the tree, written as short as a test reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/session.h"

namespace millrace::engine {

TreeRequest Get(const std::string& path, bool watch = false);
TreeRequest List(const std::string& path, bool watch = false);
TreeRequest Write(std::vector<TreeWrite> writes);
TreeWrite Create(const std::string& path, const std::string& data = "");
TreeWrite CreateEphemeral(const std::string& path, const std::string& data = "");
TreeWrite Set(const std::string& path, const std::string& data, std::int32_t version = -1);
TreeWrite Remove(const std::string& path, std::int32_t version = -1);
TreeWrite Check(const std::string& path, std::int32_t version = -1);

// Waits for an event of a kind, others dropped; nullopt if none comes within `limit`.
std::optional<TreeEvent> AwaitEvent(TreeSession& session, TreeEvent::Kind kind, Micros limit);

}  // namespace millrace::engine
