#include "framework/testing/scratch_store.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "framework/store/sqlite/session.h"
#include "framework/store/sqlite/store.h"

namespace millrace::engine {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "a test's store: %s\n", why.c_str());
  std::abort();
}

template <class T>
T Must(Result<T> result) {
  if (!result) Die(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::string MakeFolder() {
  const char* other = std::getenv("TMPDIR");
  for (std::string folder : {std::string("/dev/shm"), std::string(other == nullptr ? "/tmp" : other)}) {
    folder += "/millrace-test-XXXXXX";
    if (mkdtemp(folder.data()) != nullptr) return folder;
  }
  Die("there is no folder for it");
}

std::string FileIn(const std::string& folder) { return folder + "/shard.db"; }

}  // namespace

ScratchStore::ScratchStore(const Clock& clock, Bare) : folder_(MakeFolder()) {
  StoreUrl url;
  url.path = FileIn(folder_);
  store_ = Must(sqlite::OpenStore(url, {}, &clock));
  sqlite::File file{.path = url.path};
  Must(sqlite::Session(file, true).Open());
}

ScratchStore::ScratchStore(const Clock& clock, const SchemaSpec& spec) : ScratchStore(clock, Bare{}) {
  Must(store_->OpenSchema()->Apply(spec));
}

ScratchStore::~ScratchStore() {
  store_.reset();
  for (const char* file : {"", "-wal", "-shm"}) unlink((FileIn(folder_) + file).c_str());
  rmdir(folder_.c_str());
}

void ScratchStore::Run(const std::string& script) {
  sqlite::File file{.path = FileIn(folder_)};
  Must(sqlite::Session(file).Script(script));
}

std::int64_t ScratchStore::Ask(const std::string& sql) {
  sqlite::File file{.path = FileIn(folder_)};
  sqlite::Session session(file);
  auto rows = session.Select(sql);
  if (!rows.Next()) Die(rows.error() ? rows.error()->message : "no answer to " + sql);
  return rows.Integer(0);
}

}  // namespace millrace::engine
