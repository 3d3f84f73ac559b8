// How support code ends a test that it can't serve.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace millrace::engine {

[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "test support: %s\n", what.c_str());
  std::abort();
}

}  // namespace millrace::engine
