// How the store makes its sessions; each is in a file of its own.
#pragma once

#include <memory>

#include "framework/store/mysql/session.h"
#include "framework/store/store.h"

namespace millrace::mysql {

std::unique_ptr<TaskStore> OpenTasks(const Endpoint& endpoint);
std::unique_ptr<IncarnationStore> OpenIncarnations(const Endpoint& endpoint);
std::unique_ptr<TaskTransaction> OpenTransaction(const Endpoint& endpoint, Micros limit);
std::unique_ptr<TaskDesk> OpenDesk(const Endpoint& endpoint);
std::unique_ptr<SchemaStore> OpenSchema(const Endpoint& endpoint);

}  // namespace millrace::mysql
