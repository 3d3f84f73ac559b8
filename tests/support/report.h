// A line for the report of scripts/prove, where it asks for one by MILLRACE_REPORT.
#pragma once

#include <string>

namespace millrace::engine {

// What was asked, what was measured, and whether it holds. Prints it, too.
void Report(const std::string& scenario, const std::string& asked, const std::string& measured, bool pass);

}  // namespace millrace::engine
