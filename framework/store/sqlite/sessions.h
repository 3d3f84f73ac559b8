// How the store makes its sessions; each is in a file of its own.
#pragma once

#include <memory>

#include "framework/store/sqlite/connection.h"
#include "framework/store/store.h"

namespace millrace::engine {

std::unique_ptr<TaskDesk> OpenDesk(SqliteFile& file);

}  // namespace millrace::engine
