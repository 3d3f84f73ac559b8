// What `millrace config` is asked for: a part of the configuration, or a value within it. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// What the help calls them.
inline constexpr const char* kConfigPart = "engine, handlers, shards, schedules or alerts";
inline constexpr const char* kConfigPartOrKey =
    "engine, handlers, shards, schedules or alerts; or a key in it";

// `handlers.send_mail.retry.jitter`: the part, then keys with dots between them. A key that has dots itself
// may stand in brackets, with quotes or without: `handlers["mail.monthly"].timeout`. A task type seldom
// needs them: it ends where a handler's keys begin, so that `handlers.mail.monthly.timeout` is found, too.
class ConfigKey {
 public:
  // Invalid for an unknown part, with the nearest known one; for an empty key or an open bracket.
  static Result<ConfigKey> Read(std::string_view text);
  // Of a command that takes whole parts alone: the part. Invalid for a key within one, too.
  static Result<std::string> ReadPart(std::string_view text);

  const std::string& text() const { return text_; }  // as it was written
  const std::string& part() const { return part_; }
  // The part itself is meant.
  bool whole() const { return words_.empty(); }
  // The keys from the part's object down. `document` is what the part holds now: a task type that it has goes
  // before one that a handler's keys only suggest.
  std::vector<std::string> Keys(const nlohmann::ordered_json& document) const;

 private:
  struct Word {
    std::string text;
    bool bracketed = false;
  };
  static Result<std::vector<Word>> ReadWords(std::string_view text);
  std::size_t WordsOfType(const nlohmann::ordered_json& document) const;

  std::string text_;
  std::string part_;
  std::vector<Word> words_;
};

}  // namespace millrace::engine
