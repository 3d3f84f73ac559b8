// What is fuzzed: see README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::engine::fuzz {

struct Target {
  std::string name;
  void (*run)(std::string_view input);
  std::vector<std::string> seeds;         // good inputs, and nearly good ones
  std::vector<std::string> words;         // beside those that every target has
  std::vector<std::string> samples = {};  // run as they are, since mutants of them would only be slow
};

const std::vector<Target>& Targets();

// Ends the process by a message that names the promise, where it does not hold.
void Require(bool holds, const char* promise);

}  // namespace millrace::engine::fuzz
