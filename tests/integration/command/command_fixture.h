// The real binary on a SQLite file of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/run_process.h"

namespace millrace::engine::testing {

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    char pattern[] = "/tmp/millrace-command-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  // `arguments` are for the shell, in double quotes where they need any; {} stands for the test's folder. The
  // binary is run by `runner`, where there is one.
  ProcessResult Run(std::string arguments, const std::string& runner = "") const {
    for (auto at = arguments.find("{}"); at != std::string::npos; at = arguments.find("{}")) {
      arguments.replace(at, 2, folder_);
    }
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " " + runner + " " + Binary() + " " +
                      arguments);
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  static std::string Binary() { return std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/millrace"; }

  std::string folder_;
};

}  // namespace millrace::engine::testing
