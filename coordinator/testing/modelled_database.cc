#include "coordinator/testing/modelled_database.h"

namespace millrace::engine {

Micros ModelledDatabase::Passage(const DatabaseLink& link) {
  if (!link.open && Percent(50)) return Micros(-1);
  if (!link.open || Percent(link.late)) return kTimeout + Spread(link.latest);
  return Spread(link.slowest);
}

void ModelledDatabase::Unlock(const std::string& incarnation) {
  const auto lock = share_locks_.find(incarnation);
  if (lock != share_locks_.end() && --lock->second == 0) share_locks_.erase(lock);
}

}  // namespace millrace::engine
