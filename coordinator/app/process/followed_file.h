// A file that a process follows while it runs.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <optional>
#include <string>
#include <tuple>

#include "framework/base/clock.h"

namespace millrace::engine {

// What stands at its path may be written, replaced, or missing for a while. Not thread-safe.
class FollowedFile {
 public:
  // Of what the process has read at its start; no path: nothing. A pipe is read once.
  explicit FollowedFile(std::string path);

  // True once for each change, where the file has been the same for a second: whoever writes it may not have
  // done yet. Asked as often as one likes.
  bool Changed(BootTime now);

 private:
  using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;  // and when it was written last: s, ns
  std::optional<Version> Now() const;

  std::string path_;
  std::optional<Version> read_;
  std::optional<Version> seen_;
  BootTime next_{};
};

}  // namespace millrace::engine
