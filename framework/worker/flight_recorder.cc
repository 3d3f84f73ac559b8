#include "framework/worker/flight_recorder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "framework/files/paths.h"
#include "framework/files/trust.h"

namespace millrace::engine {
namespace {

constexpr std::uint64_t kMagic = 0x32544847494c464d;  // "MFLIGHT2"
constexpr std::size_t kLives = 256;
constexpr std::size_t kSlots = 4096;
constexpr std::string_view kSuffix = ".flight";

template <std::size_t N>
void Put(std::array<char, N>& field, std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(field.data(), text.data(), size);
  field[size] = 0;
}

template <std::size_t N>
std::string Get(const std::array<char, N>& field) {
  return std::string(field.data(), strnlen(field.data(), N));
}

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// `<worker>.<hex>`, as recorders and incarnations are named.
std::string_view WorkerOf(std::string_view name) { return name.substr(0, name.rfind('.')); }

// Open and locked, or -1. Reports what others could have put there; a file that another process has is no
// problem, nor one that it has just discarded: the lock of that says nothing.
int OpenLocked(const std::string& path, std::string& problem) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return -1;
  struct stat opened {};
  struct stat named {};
  if (fstat(file, &opened) == 0) {
    problem = S_ISREG(opened.st_mode) ? TrustProblem(opened) : "is not a regular file; remove it";
    if (problem.empty() && flock(file, LOCK_EX | LOCK_NB) == 0 && stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino) {
      return file;
    }
  }
  close(file);
  return -1;
}

struct LifeEntry {
  std::array<char, 256> store;
  std::array<char, 72> incarnation;
};

bool IsForgotten(const LifeEntry& life) { return life.store.front() == 0; }

struct Slot {
  std::uint64_t active;  // written last at the start and first at the end, through an atomic reference
  std::uint64_t id;
  std::uint32_t attempt;
  std::array<char, 48> table;
  std::array<char, 72> incarnation;
};

}  // namespace

struct FlightRecorder::Layout {
  std::uint64_t magic;
  std::uint64_t inode;  // of this very file: a copy of it speaks for nobody
  std::array<char, 48> boot_id;
  std::uint64_t stopping;
  std::uint64_t life_count;
  std::array<LifeEntry, kLives> lives;
  std::array<Slot, kSlots> slots;
};

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::Create(const std::string& folder,
                                                               const std::string& name) {
  const std::string path = folder + "/" + name + std::string(kSuffix);
  const auto fail = [&](const char* what, int error) {
    return Fail(ErrorCode::Unavailable, std::string("the flight recorder ") + path + " can't be " + what +
                                            ": " + std::strerror(error) +
                                            "; choose another --state-dir or free some space");
  };
  // It takes its name only once it is locked and whole: others collect what bears the name and no lock.
  const std::string draft = path + ".new";
  const int file = open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return fail("made", errno);
  const auto give_up = [&](const char* what, int error) {
    close(file);
    unlink(draft.c_str());
    return fail(what, error);
  };
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return give_up("locked", errno);
  if (const int error = posix_fallocate(file, 0, sizeof(Layout)); error != 0) return give_up("filled", error);
  void* memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return give_up("mapped", errno);
  const auto unmap_and_give_up = [&](const char* what) {
    const int error = errno;
    munmap(memory, sizeof(Layout));
    return give_up(what, error);
  };
  auto* map = static_cast<Layout*>(memory);
  struct stat info {};
  if (fstat(file, &info) != 0) return unmap_and_give_up("examined");
  map->inode = info.st_ino;
  Put(map->boot_id, BootId());
  map->magic = kMagic;
  if (rename(draft.c_str(), path.c_str()) != 0) return unmap_and_give_up("named");
  std::unique_ptr<FlightRecorder> recorder(new FlightRecorder(path, file, map));
  MutexLock lock(recorder->mutex_);
  for (std::size_t i = kSlots; i > 0; --i) recorder->free_.push_back(i - 1);
  return recorder;
}

FlightRecorder::~FlightRecorder() {
  unlink(path_.c_str());
  munmap(map_, sizeof(Layout));
  close(file_);
}

void FlightRecorder::NoteLife(const std::string& store, const std::string& incarnation) {
  MutexLock lock(mutex_);
  if (map_->life_count == kLives) {  // one that is forgotten makes room, or the oldest, which is long dead
    const auto forgotten = std::find_if(map_->lives.begin(), map_->lives.end(), IsForgotten);
    const auto gone = forgotten == map_->lives.end() ? map_->lives.begin() : forgotten;
    std::move(gone + 1, map_->lives.end(), gone);
    --map_->life_count;
  }
  LifeEntry& life = map_->lives[map_->life_count];
  Put(life.store, store);
  Put(life.incarnation, incarnation);
  std::atomic_ref(map_->life_count).fetch_add(1, std::memory_order_release);
}

// Its first byte goes first: the process may be killed at any moment, and a name that is cut would be that of
// another store.
void FlightRecorder::ForgetLife(const std::string& incarnation) {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < map_->life_count; ++i) {
    LifeEntry& life = map_->lives[i];
    if (Get(life.incarnation) != incarnation) continue;
    std::atomic_ref(life.store.front()).store(0, std::memory_order_release);
    life.store.fill(0);
  }
}

void FlightRecorder::NoteStopping() { std::atomic_ref(map_->stopping).store(1, std::memory_order_release); }

std::size_t FlightRecorder::Reserve() {
  MutexLock lock(mutex_);
  if (free_.empty()) return kNoSlot;
  const std::size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void FlightRecorder::Release(std::size_t slot) {
  if (slot == kNoSlot) return;
  MutexLock lock(mutex_);
  free_.push_back(slot);
}

void FlightRecorder::Begin(std::size_t index, const std::string& incarnation, const TaskKey& key,
                           std::uint32_t attempt) {
  if (index == kNoSlot) return;
  Slot& slot = map_->slots[index];
  slot.id = key.id;
  slot.attempt = attempt;
  Put(slot.table, key.table);
  Put(slot.incarnation, incarnation);
  std::atomic_ref(slot.active).store(1, std::memory_order_release);
}

void FlightRecorder::End(std::size_t index) {
  if (index == kNoSlot) return;
  std::atomic_ref(map_->slots[index].active).store(0, std::memory_order_release);
}

std::vector<std::unique_ptr<DeadRecorder>> DeadRecorder::Collect(const std::string& folder,
                                                                 const std::set<std::string>& passed_over,
                                                                 std::vector<std::string>* problems) {
  std::vector<std::unique_ptr<DeadRecorder>> found;
  const auto report = [&](const std::string& problem) {
    if (problems != nullptr) problems->push_back(problem);
  };
  const auto paths = FilesIn(folder, kSuffix);
  if (!paths) report(paths.error().message);
  for (const std::string& path : paths.value_or(std::vector<std::string>{})) {
    const std::string name = StemOf(path);
    if (passed_over.contains(name)) continue;
    std::string problem;
    const int file = OpenLocked(path, problem);
    if (!problem.empty()) report(path + " " + problem);
    if (file < 0) continue;
    std::unique_ptr<DeadRecorder> recorder(new DeadRecorder(path, name, file));
    if (recorder->Read()) {
      found.push_back(std::move(recorder));
    } else {
      report(path + " is not a whole flight recorder of this version; remove it if no worker uses it");
    }
  }
  return found;
}

bool DeadRecorder::Read() {
  using Layout = FlightRecorder::Layout;
  auto layout = std::make_unique<Layout>();
  std::size_t got = 0;
  while (got < sizeof(Layout)) {
    const ssize_t n = pread(file_, reinterpret_cast<char*>(layout.get()) + got, sizeof(Layout) - got,
                            static_cast<off_t>(got));
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  struct stat info {};
  if (layout->magic != kMagic || layout->life_count > kLives || fstat(file_, &info) != 0 ||
      layout->inode != info.st_ino) {
    return false;
  }
  for (std::size_t i = 0; i < layout->life_count; ++i) {
    if (IsForgotten(layout->lives[i])) continue;
    lives_.push_back({Get(layout->lives[i].store), Get(layout->lives[i].incarnation)});
    if (WorkerOf(lives_.back().incarnation) != WorkerOf(name_)) return false;
  }
  if (layout->stopping != 0 || Get(layout->boot_id) != BootId()) return true;
  for (const Slot& slot : layout->slots) {
    if (slot.active == 0) continue;
    const auto table = ParseTableName(Get(slot.table));
    if (!table) return false;
    runs_.push_back({Get(slot.incarnation), {*table, slot.id}, slot.attempt});
  }
  return true;
}

DeadRecorder::~DeadRecorder() { close(file_); }

void DeadRecorder::Discard() { unlink(path_.c_str()); }

}  // namespace millrace::engine
