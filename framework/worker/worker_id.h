// The stable name of a worker on its host, held by a file lock for the process's life.
#pragma once

#include <memory>
#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

// Not thread-safe.
class WorkerId {
 public:
  // Takes `wanted`; empty: the host's name and the lowest free number. Conflict if it is in use on this host;
  // Invalid for a name that CheckWorkerId refuses.
  static Result<std::unique_ptr<WorkerId>> Take(const std::string& state_dir, const std::string& wanted);
  ~WorkerId();
  WorkerId(const WorkerId&) = delete;
  WorkerId& operator=(const WorkerId&) = delete;

  const std::string& name() const { return name_; }

 private:
  WorkerId(std::string name, int file) : name_(std::move(name)), file_(file) {}

  const std::string name_;
  const int file_;
};

// A name is made of letters, digits, '.', '_' and '-', at most 48 of them, and begins with no '.'.
Status CheckWorkerId(const std::string& name);

std::string HostName();

}  // namespace millrace::engine
