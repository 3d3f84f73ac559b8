// Plugins that must be refused, each made for real.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/plugin/plugin_set.h"
#include "tests/support/plugins/recording_context.h"

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string Contents(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

void Write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class PluginLoadingTest : public testing::Test {
 protected:
  PluginLoadingTest() {
    std::string pattern = testing::TempDir() + "millrace-loading-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    folder_ = root_ / "plugins";
    fs::create_directory(folder_);
    ::chmod(folder_.c_str(), 0755);
    fs::create_directory(root_ / "state");
  }
  ~PluginLoadingTest() override { fs::remove_all(root_); }

  static fs::path Built(const std::string& name) {
    return fs::path(std::getenv("MILLRACE_BINARY_DIR")) / name;
  }

  void Put(const fs::path& from, const std::string& as) {
    fs::copy_file(from, folder_ / as);
    ::chmod((folder_ / as).c_str(), 0644);
  }
  Result<std::unique_ptr<PluginSet>> Load() { return PluginSet::Load(folder_, root_ / "state"); }
  // Of the whole set, or of the one file that is not as it should be.
  std::string Refusal() {
    const auto loaded = Load();
    if (loaded) return loaded.value()->Refused().size() == 1 ? loaded.value()->Refused()[0] : "it was loaded";
    EXPECT_EQ(loaded.error().code, ErrorCode::Invalid);
    return loaded.error().message;
  }
  std::string RefusalOf(const std::string& way) {
    Put(Built("tests/broken_plugins/" + way + ".so"), way + ".so");
    const std::string refusal = Refusal();
    fs::remove(folder_ / (way + ".so"));
    EXPECT_THAT(refusal, HasSubstr((folder_ / (way + ".so")).string()));
    return refusal;
  }
  void PutNoop() { Put(Built("plugins/noop.so"), "noop.so"); }

  fs::path root_;
  fs::path folder_;
};

TEST_F(PluginLoadingTest, AnEmptyFolderHasNoHandlers) { EXPECT_TRUE(Load().value()->Handlers().empty()); }

TEST_F(PluginLoadingTest, AForeignDescriptorIsRefusedWithTheRemedy) {
  EXPECT_THAT(RefusalOf("wrong_magic"), AllOf(HasSubstr("wrong magic"), HasSubstr("rebuild")));
  EXPECT_THAT(RefusalOf("wrong_abi"),
              AllOf(HasSubstr("ABI version 7"), HasSubstr("wants version 1"), HasSubstr("rebuild")));
  EXPECT_THAT(RefusalOf("small_descriptor"), HasSubstr("8 bytes"));
  EXPECT_THAT(RefusalOf("null_descriptor"), HasSubstr("null pointer"));
}

TEST_F(PluginLoadingTest, ABadHandlerIsRefused) {
  EXPECT_THAT(RefusalOf("bad_name"), HasSubstr("'Bad Name'"));
  EXPECT_THAT(RefusalOf("doubled_name"), HasSubstr("'broken'"));
  EXPECT_THAT(RefusalOf("null_function"), HasSubstr("open, run and close"));
  EXPECT_THAT(RefusalOf("huge_batch"), HasSubstr("100000"));
}

TEST_F(PluginLoadingTest, AMissingSymbolIsNamedReadably) {
  EXPECT_THAT(RefusalOf("missing_symbol"), AllOf(HasSubstr("'missing::FromALibraryThatIsNotLinked(int)'"),
                                                 HasSubstr("target_link_libraries")));
}

TEST_F(PluginLoadingTest, ALibraryWithoutAnEntryIsRefused) {
  EXPECT_THAT(RefusalOf("no_entry"), HasSubstr("MILLRACE_PLUGIN"));
}

TEST_F(PluginLoadingTest, ABrokenPluginHidesNoOther) {
  PutNoop();
  Put(Built("tests/broken_plugins/wrong_abi.so"), "a_broken_one.so");
  Write(folder_ / "text.so", "#!/bin/sh\n");
  ::chmod((folder_ / "text.so").c_str(), 0644);
  const auto plugins = Load().value();
  ASSERT_EQ(plugins->Handlers().size(), 1U);
  EXPECT_EQ(plugins->Handlers()[0].name, "noop");
  EXPECT_THAT(plugins->Refused(), testing::ElementsAre(HasSubstr("a_broken_one.so"), HasSubstr("text.so")));
}

TEST_F(PluginLoadingTest, OneNameInTwoPluginsIsTakenFromNeither) {
  PutNoop();
  Put(Built("plugins/noop.so"), "other.so");
  Put(Built("plugins/exec.so"), "exec.so");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("'noop'"), HasSubstr("noop.so"), HasSubstr("other.so")));
  const auto plugins = Load().value();
  ASSERT_EQ(plugins->Handlers().size(), 1U);
  EXPECT_EQ(plugins->Handlers()[0].name, "exec");
}

TEST_F(PluginLoadingTest, ATruncatedPluginIsRefusedAtEveryLength) {
  const std::string whole = Contents(Built("plugins/noop.so"));
  const fs::path file = folder_ / "noop.so";
  std::vector<std::size_t> lengths = {0, 1, 3, 4, 15, 16, 63, 64, 65, whole.size() - 1, whole.size() - 64};
  for (std::size_t i = 1; i < 40; ++i) lengths.push_back(whole.size() * i / 40);
  for (const std::size_t length : lengths) {
    Write(file, std::string_view(whole).substr(0, length));
    ::chmod(file.c_str(), 0644);
    EXPECT_THAT(Refusal(), testing::AnyOf(HasSubstr("truncated"), HasSubstr("is empty"))) << length;
  }
  Write(file, whole);
  EXPECT_EQ(Refusal(), "it was loaded");
}

TEST_F(PluginLoadingTest, WhatIsNoLibraryIsRefused) {
  Write(folder_ / "text.so", "#!/bin/sh\n");
  ::chmod((folder_ / "text.so").c_str(), 0644);
  EXPECT_THAT(Refusal(), HasSubstr("not a shared library"));
}

TEST_F(PluginLoadingTest, AFolderThatOthersCanWriteIsRefused) {
  PutNoop();
  for (const mode_t mode : {0777U, 0775U, 01777U}) {
    ::chmod(folder_.c_str(), mode);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(folder_.string()), HasSubstr("chmod go-w"))) << mode;
  }
  ::chmod(folder_.c_str(), 0755);
  ::chmod(root_.c_str(), 0777);
  EXPECT_THAT(Refusal(), HasSubstr("above the plugin folder"));
  ::chmod(root_.c_str(), 0700);
  EXPECT_TRUE(Load().has_value());
}

TEST_F(PluginLoadingTest, AFileThatOthersCanWriteIsRefused) {
  PutNoop();
  for (const mode_t mode : {0666U, 0664U}) {
    ::chmod((folder_ / "noop.so").c_str(), mode);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("noop.so"), HasSubstr("chmod go-w")));
  }
}

TEST_F(PluginLoadingTest, ACacheBelowAFolderThatOthersCanWriteIsRefused) {
  PutNoop();
  ASSERT_TRUE(Load().has_value());
  ::chmod((root_ / "state").c_str(), 0777);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("above the folder for loaded plugins"), HasSubstr("chmod go-w")));
}

TEST_F(PluginLoadingTest, ACopyThatOthersCanWriteIsReplacedBeforeItIsLoaded) {
  PutNoop();
  ASSERT_TRUE(Load().has_value());
  const fs::path copy = *fs::directory_iterator(root_ / "state" / "plugins");
  ::chmod(copy.c_str(), 0777);
  ASSERT_TRUE(Load().has_value());
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_exec);
}

TEST_F(PluginLoadingTest, AMissingFolderIsNamed) {
  fs::remove(folder_);
  EXPECT_THAT(Refusal(), HasSubstr(folder_.string()));
}

TEST_F(PluginLoadingTest, APluginThatIsOverwrittenWhileLoadedGoesOn) {
  PutNoop();
  const auto plugins = Load().value();
  const auto handler = plugins->Open("noop", "noop", "{}", {}).value();
  Write(folder_ / "noop.so", std::string(fs::file_size(folder_ / "noop.so"), '\xCC'));
  Write(folder_ / "noop.so", "");
  RecordingContext context;
  const std::vector<Task> tasks = {SomeTask("noop", "{}")};
  EXPECT_EQ(handler->Run("main", PointersTo(tasks), context).at(0).kind, OutcomeKind::Done);
}

TEST_F(PluginLoadingTest, ATamperedCopyIsReplacedBeforeItIsLoaded) {
  PutNoop();
  ASSERT_TRUE(Load().has_value());
  for (const auto& copy : fs::directory_iterator(root_ / "state" / "plugins")) {
    fs::remove(copy.path());
    Write(copy.path(), "rubbish");
  }
  EXPECT_TRUE(Load().has_value());
}

}  // namespace
}  // namespace millrace::engine
