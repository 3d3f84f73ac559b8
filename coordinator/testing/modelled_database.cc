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

void ModelledDatabase::ConfirmKeys(const DatabaseLink& link, Strand& strand, const std::string& incarnation,
                                   const std::vector<Task>& tasks,
                                   std::function<void(Result<std::vector<KeyVerdict>>)> done) {
  if (!bugs_.keys_without_lock) {
    EnterKeys(
        link, strand,
        [incarnation, tasks](CheckedShard& shard) { return shard.ConfirmKeys(incarnation, tasks); },
        std::move(done));
    return;
  }
  // Two statements, as the client sends them: the rows may change in between.
  Read<Result<std::vector<Task>>>(
      link, strand,
      [incarnation, tasks](CheckedShard& shard) {
        return Result<std::vector<Task>>(shard.shard().Running(incarnation, tasks));
      },
      [this, &link, &strand, done = std::move(done)](const Result<std::vector<Task>>& running) {
        if (!running) {
          done(Fail(running.error()));
          return;
        }
        EnterKeys(
            link, strand, [seen = *running](CheckedShard& shard) { return Verdicts(shard.EnterKeys(seen)); },
            done);
      });
}

}  // namespace millrace::engine
