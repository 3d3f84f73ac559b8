#include "tests/fuzz/mutator.h"

#include <algorithm>

namespace millrace::engine::fuzz {
namespace {

constexpr std::size_t kLongest = 512 * 1024;

// Words that lead into corners whatever the format.
const std::vector<std::string> kWords = {"",
                                         "0",
                                         "-1",
                                         "1",
                                         "9",
                                         "65535",
                                         "65536",
                                         "4294967295",
                                         "4294967296",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "99999999999999999999999",
                                         "1e999",
                                         "-0",
                                         "0.1",
                                         ".",
                                         ",",
                                         ":",
                                         ";",
                                         "/",
                                         "//",
                                         "@",
                                         "%",
                                         "%00",
                                         "%zz",
                                         "-",
                                         "--",
                                         "+",
                                         "'",
                                         "\"",
                                         "\"\"",
                                         "\\",
                                         "\\u0000",
                                         "\\ud800",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "{}",
                                         "[]",
                                         "null",
                                         "true",
                                         "\n",
                                         "\r\n",
                                         "\r",
                                         "\t",
                                         " ",
                                         std::string(1, '\0'),
                                         "\x7f",
                                         "\x80",
                                         "\xc2\x9b",
                                         "\xe2\x80\xae",
                                         "\xff",
                                         "\xef\xbb\xbf",
                                         "\xf0\x9f\x98\x80",
                                         "ä"};

}  // namespace

Mutator::Mutator(const Target& target, std::uint64_t seed) : target_(target), seed_(seed), words_(kWords) {
  words_.insert(words_.end(), target.words.begin(), target.words.end());
}

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
std::uint64_t Mutator::Next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::size_t Mutator::Below(std::size_t bound) {
  return bound == 0 ? 0 : static_cast<std::size_t>(Next() % bound);
}

const std::string& Mutator::Word() { return words_[Below(words_.size())]; }

std::string Mutator::Make(std::uint64_t number) {
  state_ = seed_ * 0x2545f4914f6cdd1d + number;
  for (const char c : target_.name) state_ = state_ * 31 + static_cast<unsigned char>(c);
  Next();
  std::string text = target_.seeds[Below(target_.seeds.size())];
  const std::size_t changes = 1 + Below(Below(8) == 0 ? 32 : 4);
  for (std::size_t i = 0; i < changes; ++i) Change(text);
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

void Mutator::Change(std::string& text) {
  const std::size_t at = Below(text.size() + 1);
  const std::size_t some = Below(std::min<std::size_t>(text.size() - std::min(at, text.size()), 24) + 1);
  switch (Below(10)) {
    case 0:  // a bit
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
      break;
    case 1:  // a byte
      text.insert(at, 1, static_cast<char>(Next()));
      break;
    case 2:
      text.erase(at, some);
      break;
    case 3:
      text.resize(at);
      break;
    case 4:  // a part again, elsewhere
      text.insert(Below(text.size() + 1), text.substr(at, some));
      break;
    case 5: {  // the other half of another seed
      const std::string& other = target_.seeds[Below(target_.seeds.size())];
      text = text.substr(0, at) + other.substr(Below(other.size() + 1));
      break;
    }
    case 6:
      if (Below(64) == 0) {  // very many of one word: depth, length
        const std::string& word = Word();
        const std::size_t times = std::size_t{1} << Below(18);
        std::string many;
        while (many.size() < word.size() * times && many.size() < kLongest / 2) many += word;
        text.insert(at, many);
        break;
      }
      [[fallthrough]];
    case 7:
      text.insert(at, Word());
      break;
    default:
      text.replace(at, some, Word());
  }
}

}  // namespace millrace::engine::fuzz
