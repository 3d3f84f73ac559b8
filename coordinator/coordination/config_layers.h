// The configuration in force, from its layers: the cluster's nodes, and over them the file that a process was
// started with, key by key. Each node is checked whole; one that is bad changes nothing, its last good text
// stays. The shards are the exception: they are facts that all processes of a cluster must agree on, so where
// `config/shards` names any, what this process was started with says nothing.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/config/config.h"

namespace millrace::engine {

inline constexpr std::array<const char*, 5> kConfigParts{"engine", "handlers", "shards", "schedules",
                                                         "alerts"};
bool IsConfigPart(std::string_view name);

// Checks one part by itself. Invalid with every problem, one a line: `config/handlers:3: handlers.noop.…: …`;
// for a shard in a SQLite file, too, which no other process of a cluster could open.
Status ValidateConfigPart(const std::string& part, std::string_view text,
                          UnknownZones zones = UnknownZones::Refused, LineNumbers lines = LineNumbers::Told);

// A store that a process is told of by itself, and by what: `--store`, `MILLRACE_STORE`.
struct OwnStore {
  std::string url;  // empty: none
  std::string from;
};

// Not thread-safe.
class ConfigLayers {
 public:
  // `file_text` is the whole file, already checked, which `file_name` names to people; empty: there is none.
  // `store` is the one shard, `main`, where the cluster names none; it goes before shards of the file.
  explicit ConfigLayers(std::string file_text = "", std::string file_name = "", OwnStore store = {});

  // The text of a part's node; empty: there is no such node, which is the same as {}. False: it says nothing
  // new. A bad one is remembered under Refusals. One that is good by itself and not together with the others
  // is tried again with every change of another part.
  bool SetPart(const std::string& part, std::string_view text);
  // Nothing can be had of a part's text, and why: as a bad one.
  bool RefusePart(const std::string& part, const std::string& why);

  std::shared_ptr<const Config> Effective() const { return effective_; }
  // By part: why its newest text is not in force.
  const std::map<std::string, std::string>& Refusals() const { return refusals_; }
  // Why the shards that this process was started with are not those in force, for people: the cluster names
  // others. Empty: they are, or there are none, or the one store is among them.
  std::string Ignored() const;
  // Every value in force, with its key path (`handlers.noop.concurrency`), as JSON, and from where: the
  // file's name, `config/handlers`, `code of plugin points 1.0`, or `default` for what nobody has set.
  // `brought` is what handlers bring, by their names; of a type that is not configured these values alone,
  // unless it is the type `also`.
  struct Value {
    std::string json;
    std::string source;
  };
  struct Brought {
    std::string plugin;
    CodeDefaults defaults;
  };
  std::map<std::string, Value> Values(const std::map<std::string, Brought>& brought = {},
                                      const std::string& also = "") const;

 private:
  using Texts = std::map<std::string, std::string>;  // by part

  void Settle();
  Status Adopt(Texts texts);
  bool ClusterNamesShards(const Texts& texts) const;

  std::string file_text_;
  std::string file_name_;
  OwnStore store_;
  Texts newest_;
  Texts faults_;  // of newest texts that are bad by themselves: what is wrong
  Texts in_force_;
  Texts refusals_;
  std::shared_ptr<const Config> effective_;
};

}  // namespace millrace::engine
