#include "tests/support/report.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace millrace::engine {

void Report(const std::string& scenario, const std::string& asked, const std::string& measured, bool pass) {
  std::printf("%s  %s: %s\n", pass ? "ok    " : "FAILED", asked.c_str(), measured.c_str());
  const char* file = std::getenv("MILLRACE_REPORT");
  if (file == nullptr) return;
  const nlohmann::json line = {
      {"scenario", scenario}, {"asked", asked}, {"measured", measured}, {"pass", pass}};
  std::ofstream(file, std::ios::app) << line.dump() << '\n';
}

}  // namespace millrace::engine
