// The rehearsal's walk through a store, in two halves: what mills send (rehearsal_mill.cc), and what people
// and the coordinator do (rehearsal.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/store/rehearsal.h"

namespace millrace::engine {

// A look that may end in a NotFound, a Conflict or a Cancelled, which is what it was sent for.
template <class T>
Status Sent(const Result<T>& answer) {
  if (answer || answer.error().code == ErrorCode::NotFound || answer.error().code == ErrorCode::Conflict ||
      answer.error().code == ErrorCode::Cancelled)
    return {};
  return Fail(answer.error());
}

// One walk. Not thread-safe.
class RehearsalWalk {
 public:
  explicit RehearsalWalk(RehearsalStage& stage)
      : stage_(stage), table_(stage.table), me_(stage.name + ".me") {}

  Status Run() {
    BOOST_OUTCOME_TRYV(Lives());
    BOOST_OUTCOME_TRYV(Looks());
    BOOST_OUTCOME_TRYV(Claims());
    BOOST_OUTCOME_TRYV(Keys());
    BOOST_OUTCOME_TRYV(Settles());
    BOOST_OUTCOME_TRYV(Rescues());
    BOOST_OUTCOME_TRYV(Submits());
    BOOST_OUTCOME_TRYV(People());
    BOOST_OUTCOME_TRYV(Overview());
    BOOST_OUTCOME_TRYV(Alerts());
    BOOST_OUTCOME_TRYV(Schedules());
    BOOST_OUTCOME_TRYV(FanOuts());
    BOOST_OUTCOME_TRYV(Batches());
    BOOST_OUTCOME_TRYV(Permits());
    BOOST_OUTCOME_TRYV(Prunes());
    return Schema();
  }

 private:
  using Ids = std::vector<std::uint64_t>;

  std::string Text() const { return std::string(table_.text()); }
  TaskKey Key(std::uint64_t id) const { return {table_, id}; }
  ClaimRequest Request(Ids ids, std::uint32_t attempt = 0) const {
    return {.table = table_, .incarnation = me_, .attempt = attempt, .ids = std::move(ids)};
  }
  DueGroup Group() const { return {.table = table_, .slice = 0, .handler = "a", .urgency = 50}; }
  std::string KeyOf(std::uint64_t id) const { return stage_.name + std::to_string(id); }
  // A task as it was claimed, with its key.
  Task Claimed(std::uint64_t id) const {
    Task task;
    task.key = Key(id);
    task.handler = id % 2 == 0 ? "a" : "b";
    task.biz_key = KeyOf(id);
    task.attempt = 1;
    return task;
  }
  Settlement End(std::uint64_t id, Settlement::To to, bool keyed) const {
    const Task task = Claimed(id);
    Settlement one{.key = task.key, .attempt = 1, .to = to, .handler = task.handler};
    if (keyed) one.biz_key = task.biz_key;
    return one;
  }

  Status Lives();
  Status Looks();
  Status Claims();
  Status Keys();
  Status Settles();
  Status Rescues();
  Status Submits();
  Status Edits();
  Status Readers();
  Status People();
  Status Overview();
  Status Alerts();
  Status Schedules();
  Status FanOuts();
  Status Batches();
  Status Permits();
  Status Prunes();
  Status Schema();

  RehearsalStage& stage_;
  const TableName table_;
  const std::string me_;
};

}  // namespace millrace::engine
