#include "framework/plugin/plugin_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>

#include "framework/files/descriptor.h"
#include "framework/files/paths.h"
#include "framework/files/trust.h"

namespace millrace::engine {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr unsigned kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr unsigned kMachine = EM_PPC64;
#elif defined(__s390x__)
constexpr unsigned kMachine = EM_S390;
#else
constexpr unsigned kMachine = EM_NONE;  // not checked here; the system's loader will
#endif

template <class T>
std::optional<T> ReadAt(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool Fits(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

std::string Truncated(std::string_view bytes, const char* part) {
  return std::string("is truncated: its ") + part + " lies beyond its end at " +
         std::to_string(bytes.size()) + " bytes";
}

std::string SegmentProblem(std::string_view bytes, const Header& header) {
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Segment))
    return "has no program headers of this system";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadAt<Segment>(bytes, header.e_phoff + std::uint64_t{i} * sizeof(Segment));
    if (!segment) return Truncated(bytes, "table of segments");
    if (segment->p_type != PT_NULL && !Fits(bytes, segment->p_offset, segment->p_filesz)) {
      return Truncated(bytes, "code or data");
    }
  }
  return {};
}

std::string SectionProblem(std::string_view bytes, const Header& header) {
  if (header.e_shoff == 0) return {};  // stripped of its sections: allowed
  if (header.e_shentsize != sizeof(Section)) return "has section headers of another system";
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = ReadAt<Section>(bytes, header.e_shoff + std::uint64_t{i} * sizeof(Section));
    if (!section) return Truncated(bytes, "table of sections");
    if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
        !Fits(bytes, section->sh_offset, section->sh_size)) {
      return Truncated(bytes, "last part");
    }
  }
  return {};
}

constexpr std::int64_t kLargestPlugin = std::int64_t{1} << 30;

std::string ErrnoText() { return std::strerror(errno); }

Result<std::string> ReadAll(int fd, const std::string& file, off_t size) {
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::Invalid, "the plugin '" + file + "' can't be read: " + ErrnoText());
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<std::string> ReadTrusted(const std::string& file) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0)
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' can't be opened: " + ErrnoText());
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' is not a regular file");
  }
  if (const std::string problem = TrustProblem(info); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem);
  }
  if (info.st_size > kLargestPlugin)
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' is larger than 1 GiB");
  return ReadAll(fd.get(), file, info.st_size);
}

// It only names the copy, whose content is compared before it is used.
std::string ContentName(std::string_view bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%zx-%016zx", bytes.size(), std::hash<std::string_view>()(bytes));
  return text;
}

// False also for a copy that others could still change.
bool IsSame(const std::string& path, std::string_view bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (!TrustProblem(info).empty()) return false;
  if (static_cast<std::size_t>(info.st_size) != bytes.size()) return false;
  const auto present = ReadAll(fd.get(), path, info.st_size);
  return present && *present == bytes;
}

// By a new file and a rename: a process that has the old one mapped keeps it.
Status WriteCopy(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  const Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() >= 0 && WriteAll(fd.get(), bytes) && ::fchmod(fd.get(), 0500) == 0 &&
      ::rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  const std::string reason = ErrnoText();
  if (fd.get() >= 0) ::unlink(temporary.c_str());
  return Fail(ErrorCode::Unavailable, "the copy '" + path + "' of a plugin can't be written: " + reason +
                                          "; make room there, or name another --state-dir");
}

// Empty, or what is wrong with the bytes: "is truncated: …".
std::string ElfProblem(std::string_view bytes) {
  if (bytes.empty()) return "is empty";
  if (!bytes.starts_with(std::string_view(ELFMAG, std::min<std::size_t>(SELFMAG, bytes.size())))) {
    return "is not a shared library (no ELF file)";
  }
  const auto header = ReadAt<Header>(bytes, 0);
  if (!header) return Truncated(bytes, "header");
  const int own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  const int own_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const bool foreign = header->e_ident[EI_CLASS] != own_class || header->e_ident[EI_DATA] != own_order ||
                       (kMachine != EM_NONE && header->e_machine != kMachine);
  if (foreign) return "is built for another kind of processor";
  if (header->e_type != ET_DYN)
    return "is not a shared library (build it with -shared, or as a CMake MODULE)";
  if (std::string problem = SegmentProblem(bytes, *header); !problem.empty()) return problem;
  return SectionProblem(bytes, *header);
}

}  // namespace

Result<std::vector<std::string>> ListPlugins(const std::string& folder) {
  BOOST_OUTCOME_TRY(trusted, TrustedFolder(folder, "plugin folder"));
  return FilesIn(trusted, ".so");
}

Result<std::string> ReadPlugin(const std::string& file) {
  BOOST_OUTCOME_TRY(bytes, ReadTrusted(file));
  if (const std::string problem = ElfProblem(bytes); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem +
                                        "; build or copy it again, or take it out of the folder");
  }
  return bytes;
}

Result<std::string> StagePlugin(const std::string& file, const std::string& cache) {
  BOOST_OUTCOME_TRY(bytes, ReadPlugin(file));
  BOOST_OUTCOME_TRY(trusted, MakeTrustedFolder(cache, "folder for loaded plugins"));
  const std::string copy = trusted + "/" + StemOf(file) + "-" + ContentName(bytes) + ".so";
  if (!IsSame(copy, bytes)) {
    BOOST_OUTCOME_TRYV(WriteCopy(copy, bytes));
  }
  return copy;
}

}  // namespace millrace::engine
