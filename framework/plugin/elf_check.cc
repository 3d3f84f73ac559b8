#include "framework/plugin/elf_check.h"

#include <elf.h>
#include <link.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

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

}  // namespace

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

}  // namespace millrace::engine
