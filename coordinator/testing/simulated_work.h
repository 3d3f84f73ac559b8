// What there is to do in a simulated cluster, and who takes what of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace {

struct SimulatedWork {
  static constexpr const char* kShard = "main";

  std::uint32_t slices = 0;  // of the one table
  std::vector<std::string> handlers;
  // Workers that take some handlers only; sorted. All others take all.
  std::map<std::string, std::vector<std::string>> limits = {};

  bool Takes(const std::string& worker, const std::string& handler) const {
    const auto limit = limits.find(worker);
    return limit == limits.end() || std::binary_search(limit->second.begin(), limit->second.end(), handler);
  }
};

}  // namespace millrace
