// How the store makes its sessions; each is in a file of its own.
#pragma once

#include <memory>

#include "framework/store/sqlite/session.h"
#include "framework/store/store.h"

namespace millrace::engine::sqlite {

// It holds up every other writer while it is open, so a handler's is cut short.
inline constexpr Micros kLongestOfHandler = std::chrono::seconds(5);
std::unique_ptr<TaskTransaction> OpenTransaction(File& file, Micros limit);
std::unique_ptr<OverviewStore> OpenOverview(File& file);
std::unique_ptr<SchemaStore> OpenSchema(File& file);
std::unique_ptr<StoreDiagnosis> OpenDiagnosis(File& file);
std::unique_ptr<ChangeFeed> OpenFileWatch(const std::string& path);

}  // namespace millrace::engine::sqlite
