#include "coordinator/app/config/config_key.h"

#include <algorithm>

#include "coordinator/coordination/config_layers.h"
#include "framework/base/suggest.h"
#include "framework/config/config.h"

namespace millrace::engine {
namespace {

Failure Wrong(std::string_view text, const std::string& what) {
  return Fail(ErrorCode::Invalid, "'" + std::string(text) + "' " + what +
                                      ": write PART.KEY.KEY, such as handlers.noop.timeout, and a key that "
                                      "has dots in brackets: handlers[\"a.b\"].timeout");
}

std::string_view WithoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool IsHandlerKey(const std::string& word) {
  const auto& names = HandlerKeyNames();
  return std::find(names.begin(), names.end(), word) != names.end();
}

}  // namespace

Result<ConfigKey> ConfigKey::Read(std::string_view text) {
  ConfigKey key;
  key.text_ = text;
  const std::size_t end = std::min(text.find_first_of(".["), text.size());
  key.part_ = text.substr(0, end);
  if (!IsConfigPart(key.part_)) {
    const std::vector<std::string> known(kConfigParts.begin(), kConfigParts.end());
    return Fail(ErrorCode::Invalid, "there is no part '" + key.part_ + "'" + DidYouMean(key.part_, known) +
                                        "; the parts are engine, handlers, shards, schedules and alerts");
  }
  auto words = ReadWords(text.substr(end));
  if (!words) return Wrong(text, words.error().message);
  key.words_ = std::move(*words);
  return key;
}

Result<std::string> ConfigKey::ReadPart(std::string_view text) {
  BOOST_OUTCOME_TRY(key, Read(text));
  if (key.whole()) return key.part();
  return Fail(ErrorCode::Invalid, "'" + std::string(text) + "' is a key; give the whole part, " + key.part());
}

// `rest` is what follows the part: `.a["b.c"].d`
Result<std::vector<ConfigKey::Word>> ConfigKey::ReadWords(std::string_view rest) {
  std::vector<Word> words;
  while (!rest.empty()) {
    const bool bracketed = rest.front() == '[';
    if (!bracketed && rest.front() != '.') return Fail(ErrorCode::Invalid, "goes on after a bracket");
    rest.remove_prefix(1);
    const std::size_t end = bracketed ? rest.find(']') : std::min(rest.find_first_of(".["), rest.size());
    if (end == std::string_view::npos) return Fail(ErrorCode::Invalid, "has a bracket that stays open");
    const std::string_view word = bracketed ? WithoutQuotes(rest.substr(0, end)) : rest.substr(0, end);
    if (word.empty()) return Fail(ErrorCode::Invalid, "has an empty key");
    words.push_back({std::string(word), bracketed});
    rest.remove_prefix(bracketed ? end + 1 : end);
  }
  return words;
}

// How many of the words are the task type.
std::size_t ConfigKey::WordsOfType(const nlohmann::ordered_json& document) const {
  if (words_.front().bracketed) return 1;
  const auto key_follows = [&](std::size_t count) {
    return count == words_.size() || IsHandlerKey(words_[count].text);
  };
  std::size_t known = 0;      // the longest type that the document has
  std::size_t suggested = 0;  // the shortest that one of a handler's keys follows
  std::string type;
  for (std::size_t count = 1; count <= words_.size() && !words_[count - 1].bracketed; ++count) {
    type += (count == 1 ? "" : ".") + words_[count - 1].text;
    if (document.contains(type) && key_follows(count)) known = count;
    if (suggested == 0 && count < words_.size() && key_follows(count)) suggested = count;
  }
  return std::max<std::size_t>(1, known > 0 ? known : suggested);
}

std::vector<std::string> ConfigKey::Keys(const nlohmann::ordered_json& document) const {
  std::vector<std::string> keys;
  for (const Word& word : words_) keys.push_back(word.text);
  if (part_ != "handlers" || words_.empty()) return keys;
  const std::size_t count = WordsOfType(document);
  for (std::size_t i = 1; i < count; ++i) keys[0] += "." + keys[i];
  keys.erase(keys.begin() + 1, keys.begin() + static_cast<std::ptrdiff_t>(count));
  return keys;
}

}  // namespace millrace::engine
