// The configuration in force, from its layers: the cluster's nodes, and over them the file that a process was
// started with, key by key. Each node is checked whole; one that is bad changes nothing, its last good text
// stays.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/config/config.h"

namespace millrace {

inline constexpr std::array<const char*, 5> kConfigParts{"engine", "handlers", "shards", "schedules",
                                                         "alerts"};
bool IsConfigPart(std::string_view name);

// Checks one part by itself. Invalid with every problem, one a line: `config/handlers:3: handlers.noop.…: …`.
Status ValidateConfigPart(const std::string& part, std::string_view text);

// Not thread-safe.
class ConfigLayers {
 public:
  // `file_text` is the whole file, already checked, which `file_name` names to people; empty: there is none.
  explicit ConfigLayers(std::string file_text = "", std::string file_name = "");

  // The text of a part's node; empty: there is no such node, which is the same as {}. False: it says nothing
  // new. A bad one is remembered under Refusals. One that is good by itself and not together with the others
  // is tried again with every change of another part.
  bool SetPart(const std::string& part, std::string_view text);

  std::shared_ptr<const Config> Effective() const { return effective_; }
  // By part: why its newest text is not in force.
  const std::map<std::string, std::string>& Refusals() const { return refusals_; }
  // Every value in force, with its key path (`handlers.noop.concurrency`), as JSON, and from where: the
  // file's name, `config/handlers`, or `default` for what nobody has set.
  struct Value {
    std::string json;
    std::string source;
  };
  std::map<std::string, Value> Values() const;

 private:
  using Texts = std::map<std::string, std::string>;  // by part

  void Settle();
  Status Adopt(Texts texts);

  std::string file_text_;
  std::string file_name_;
  Texts newest_;
  Texts faults_;  // of newest texts that are bad by themselves: what is wrong
  Texts in_force_;
  Texts refusals_;
  std::shared_ptr<const Config> effective_;
};

}  // namespace millrace
