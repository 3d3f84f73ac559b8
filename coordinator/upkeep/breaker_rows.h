// Which breakers are open in this process's worker, as rows beside the pauses of a shard: without a cluster
// nobody else could know. They pause nothing, and stand in the audit like a pause.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "framework/store/store.h"

namespace millrace::engine {

struct OpenBreakers {
  std::string worker;                        // its stable name
  std::map<std::string, std::string> types;  // that are open, and why
};

// Not thread-safe.
class BreakerRows {
 public:
  BreakerRows(std::string shard, std::shared_ptr<Store> store)
      : shard_(std::move(shard)), store_(std::move(store)) {}

  // Makes the rows say this, where they do not yet; what an earlier life of the worker left goes. What can't
  // be written is tried again with the next call.
  void Tell(const OpenBreakers& open);

  // Removes the rows of workers that have no living incarnation in the shard; to be called now and then.
  // False: it could not.
  bool TidyUp();

 private:
  Status Write(const OpenBreakers& open);
  Status RemoveLeft();

  const std::string shard_;
  const std::shared_ptr<Store> store_;
  bool read_ = false;            // what stood there
  std::set<std::string> there_;  // rows of this worker, by name
  bool troubled_ = false;        // the last time, and that was told
  bool stuck_ = false;           // others' rows could not be removed the last time, and that was told
};

}  // namespace millrace::engine
