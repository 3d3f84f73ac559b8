#include "framework/task/slice_choice.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace millrace::engine {
namespace {

constexpr std::uint64_t kLongestRun = 1'000;
constexpr std::uint64_t kRunsOfASlice = 8;

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) == 0 ? 0 : 0xEDB88320U);
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();

}  // namespace

std::uint64_t SliceRun(std::uint64_t rows, std::uint32_t slices) {
  return std::clamp<std::uint64_t>(rows / (kRunsOfASlice * slices), 1, kLongestRun);
}

std::uint32_t SliceOfKey(std::string_view key, std::uint32_t slices) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : key) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~crc % slices;
}

SliceRuns::SliceRuns(std::uint32_t slices, std::uint64_t rows, Random random)
    : expected_(rows), random_(std::move(random)), order_(slices) {
  std::iota(order_.begin(), order_.end(), 0U);
}

std::uint32_t SliceRuns::Next() {
  ++given_;
  if (left_ == 0) {
    left_ = SliceRun(expected_ > 0 ? expected_ : given_, static_cast<std::uint32_t>(order_.size()));
    drawn_ %= order_.size();
    std::swap(order_[drawn_], order_[drawn_ + random_.Below(order_.size() - drawn_)]);
    ++drawn_;
  }
  --left_;
  return order_[drawn_ - 1];
}

}  // namespace millrace::engine
