#include "framework/metrics/registry.h"

namespace millrace::engine {

Counter& Registry::GetCounter(const std::string& name, const Labels& labels) {
  MutexLock lock(mutex_);
  auto& counter = counters_[{name, labels}];
  if (!counter) counter = std::make_unique<Counter>();
  return *counter;
}

std::string Registry::Text() const {
  MutexLock lock(mutex_);
  std::string text;
  for (const auto& [key, counter] : counters_) {
    text += key.first;
    if (!key.second.empty()) {
      text += '{';
      const char* separator = "";
      for (const auto& [label, value] : key.second) {
        text += separator + label + "=\"";
        for (char c : value) {
          if (c == '"' || c == '\\') text += '\\';
          text += c == '\n' ? ' ' : c;
        }
        text += '"';
        separator = ",";
      }
      text += '}';
    }
    text += ' ' + std::to_string(counter->Value()) + '\n';
  }
  return text;
}

}  // namespace millrace::engine
