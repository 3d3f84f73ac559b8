// A message of an alert: its words, and the tasks that carry it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/alerts/judge.h"
#include "framework/config/config.h"
#include "framework/task/task.h"

namespace millrace::engine {

struct Notice {
  std::string alert;         // its name
  std::uint64_t number = 0;  // of this alert's messages; from 1
  bool firing = true;        // false: it is over
  bool test = false;         // somebody tries whether messages arrive
  std::string from;          // whose tasks it is about: `the cluster default`
  WallTime since{};          // it fires, or did
  WallTime at{};             // of the message
  AlertFact fact;
  std::vector<std::string> examples = {};  // `main/tasks/17: no such customer`
};

// One task for each of the alert's addresses and one for its webhook, with the keys that let each take effect
// once. Line ends and other controls of names and errors are escaped, and everything is bounded.
std::vector<NewTask> TasksOf(const Notice& notice, const AlertConfig& alert);

// What all keys of an alert's messages begin with.
std::string KeysOf(const std::string& alert);
// The number of the message that has this key; nullopt: it is none of that alert.
std::optional<std::uint64_t> NumberOfKey(const std::string& alert, std::string_view key);

// What a message's params say of it.
struct NoticeParams {
  bool firing = false;
  std::uint64_t count = 0;
  WallTime since{};
  std::vector<std::string> names = {};
  std::string kind = {};     // in the configuration's word
  std::string handler = {};  // empty: an older version has written it
};
std::optional<NoticeParams> ParseNoticeParams(std::string_view params);

}  // namespace millrace::engine
