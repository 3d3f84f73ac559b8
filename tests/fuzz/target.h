// What is fuzzed: see README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine::fuzz {

struct Target {
  std::string name;
  void (*run)(std::string_view input);
  std::vector<std::string> seeds;         // good inputs, and nearly good ones
  std::vector<std::string> words;         // beside those that every target has
  std::vector<std::string> samples = {};  // run as they are, since mutants of them would only be slow
};

const std::vector<Target>& Targets();
// Those of them that have to do with schedules.
std::vector<Target> ScheduleTargets();
// Those that read what `cluster status` shows.
std::vector<Target> ShownTargets();

// Ends the process by a message that names the promise, where it does not hold.
void Require(bool holds, const char* promise);

// Every parser's refusal: the input is wrong, and a person is told why.
template <class T>
void RequireRefusal(const Result<T>& result) {
  Require(result.error().code == ErrorCode::Invalid, "what is refused is Invalid");
  Require(!result.error().message.empty(), "a refusal says why");
  Require(result.error().message.size() < 64 * 1024, "a refusal can be read");
}

}  // namespace millrace::engine::fuzz
