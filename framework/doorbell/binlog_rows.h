// Which slices of a task table, and which rows, one event of the binary log makes worth a look. Pure;
// whatever bytes it is given, it reads none but those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::engine {

using ByteSpan = std::span<const unsigned char>;

// Reads numbers and texts of a buffer that may lie about its lengths: what is asked for beyond its end is
// empty or zero, and the buffer is bad from then on. Little-endian, as the servers write.
class BinlogBytes {
 public:
  explicit BinlogBytes(ByteSpan bytes) : left_(bytes) {}

  // Nothing was asked for that is not there.
  bool good() const { return good_; }
  std::size_t left() const { return left_.size(); }

  ByteSpan Take(std::size_t count) {
    if (count > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const ByteSpan taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  void Skip(std::size_t count) { (void)Take(count); }
  // Of `width` bytes, eight at most.
  std::uint64_t Number(std::size_t width) {
    std::uint64_t number = 0;
    const ByteSpan bytes = Take(width);
    for (std::size_t i = bytes.size(); i > 0; --i) number = number << 8 | bytes[i - 1];
    return number;
  }
  // A number whose first byte says how many bytes it takes.
  std::uint64_t PackedNumber() {
    const std::uint64_t first = Number(1);
    if (first < 251) return first;
    if (first == 252) return Number(2);
    if (first == 253) return Number(3);
    if (first == 254) return Number(8);
    good_ = false;  // NULL or an error has no place here
    return 0;
  }
  std::string_view Text(std::size_t size) {
    const ByteSpan bytes = Take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  ByteSpan left_;
  bool good_ = true;
};

// The columns of a table as TABLE_MAP describes them.
struct BinlogColumns {
  std::vector<std::uint8_t> types;
  std::vector<std::uint16_t> metadata;  // of each: lengths and precisions; 0 for types without

  // What follows the table's name in the event; nullopt: it makes no sense.
  static std::optional<BinlogColumns> Read(BinlogBytes& bytes);
  // `id`, `slice` and `state` come first, in the widths of a task table.
  bool OfTaskTable() const;
};

enum class BinlogRowsKind { Inserted, Updated };

struct WaitingRows {
  std::vector<std::uint32_t> slices;  // sorted; empty: none of the rows waits
  std::vector<std::uint64_t> ids;     // as Ring::rows
};

// The rows that wait after the event. `bytes` begin with the number of columns. nullopt: they can't be told,
// and every slice may be meant.
std::optional<WaitingRows> ReadWaitingRows(const BinlogColumns& columns, BinlogRowsKind kind,
                                           BinlogBytes bytes);

}  // namespace millrace::engine
