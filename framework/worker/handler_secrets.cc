#include "framework/worker/handler_secrets.h"

#include <cstdlib>

#include "framework/store/url.h"

namespace millrace::engine {

Result<Secrets> ReadSecrets(const std::string& type, const HandlerConfig& config) {
  Secrets secrets;
  for (const auto& [name, source] : config.secrets) {
    if (!source.file.empty()) {
      auto value = ReadPasswordFile(source.file);
      if (!value)
        return Fail(ErrorCode::Invalid,
                    "handlers." + type + ".secrets." + name + ": " + value.error().message);
      secrets.emplace_back(name, *value);
      continue;
    }
    const char* value = std::getenv(source.variable.c_str());
    if (value == nullptr) {
      return Fail(ErrorCode::Invalid, "handlers." + type + ".secrets." + name +
                                          ": the environment variable " + source.variable + " is not set");
    }
    secrets.emplace_back(name, value);
  }
  return secrets;
}

}  // namespace millrace::engine
