#include "framework/base/random.h"

namespace millrace::engine {

Random Random::FromSystem() {
  std::random_device device;
  return Random((std::uint64_t{device()} << 32) ^ device());
}

std::string Random::Hex(int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t bits = Next();
  std::string text(static_cast<std::size_t>(digits), '0');
  for (char& c : text) {
    c = kDigits[bits & 15];
    bits >>= 4;
  }
  return text;
}

}  // namespace millrace::engine
