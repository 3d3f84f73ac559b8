// `host:port,host:port/chroot`: where an ensemble is, and where in its tree we live. Pure.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

struct ZookeeperAddress {
  std::string hosts;   // `host:port,…`: every host with its port (2181 where none was given)
  std::string chroot;  // empty, or `/a/b`
};

// Invalid says what is wrong and what to write.
Result<ZookeeperAddress> ParseZookeeperAddress(std::string_view text);

// The commands that make a chroot, one for each of its parts: for a person to type.
std::string ChrootCommands(const ZookeeperAddress& address);

// Letters, digits, `.`, `_` and `-`, at most 64, not beginning with a dot: it becomes a node's name.
Status CheckClusterName(std::string_view name);

}  // namespace millrace::engine
