#include "framework/doorbell/binlog_rows.h"

#include <set>
#include <utility>

#include "framework/store/change_feed.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kMostColumns = 4096;  // the servers' own bound
constexpr std::size_t kMostSlices = 64;     // told apart; beyond them every slice is meant
constexpr std::size_t kIdColumn = 0;
constexpr std::size_t kSliceColumn = 1;
constexpr std::size_t kStateColumn = 2;
constexpr std::uint64_t kWaitingState = 0;

// Types of columns, as in the servers' field_types.h; MariaDB's compressed columns are 140 and 141.
enum ColumnType : std::uint8_t {
  kTiny = 1,
  kShort = 2,
  kLong = 3,
  kFloat = 4,
  kDouble = 5,
  kNull = 6,
  kTimestamp = 7,
  kLongLong = 8,
  kInt24 = 9,
  kDate = 10,
  kTime = 11,
  kDateTime = 12,
  kYear = 13,
  kNewDate = 14,
  kVarchar = 15,
  kBit = 16,
  kTimestamp2 = 17,
  kDateTime2 = 18,
  kTime2 = 19,
  kBlobCompressed = 140,
  kVarcharCompressed = 141,
  kVector = 242,
  kJson = 245,
  kNewDecimal = 246,
  kEnum = 247,
  kSet = 248,
  kTinyBlob = 249,
  kMediumBlob = 250,
  kLongBlob = 251,
  kBlob = 252,
  kVarString = 253,
  kString = 254,
  kGeometry = 255,
};

std::size_t MetadataBytes(std::uint8_t type) {
  switch (type) {
    case kVarchar:
    case kVarcharCompressed:
    case kBit:
    case kNewDecimal:
    case kEnum:
    case kSet:
    case kVarString:
    case kString:
      return 2;
    case kFloat:
    case kDouble:
    case kTimestamp2:
    case kDateTime2:
    case kTime2:
    case kBlobCompressed:
    case kVector:
    case kJson:
    case kTinyBlob:
    case kMediumBlob:
    case kLongBlob:
    case kBlob:
    case kGeometry:
      return 1;
    default:
      return 0;
  }
}

std::size_t DecimalBytes(std::uint16_t metadata) {
  constexpr std::size_t kOfDigits[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
  const std::size_t precision = metadata & 0xFF;
  const std::size_t scale = metadata >> 8;
  const std::size_t whole = precision > scale ? precision - scale : 0;
  return whole / 9 * 4 + kOfDigits[whole % 9] + scale / 9 * 4 + kOfDigits[scale % 9];
}

// The widths of the types that have one alone.
std::optional<std::size_t> FixedBytes(std::uint8_t type) {
  switch (type) {
    case kNull:
      return 0;
    case kTiny:
    case kYear:
      return 1;
    case kShort:
      return 2;
    case kInt24:
    case kDate:
    case kNewDate:
    case kTime:
      return 3;
    case kLong:
    case kFloat:
    case kTimestamp:
      return 4;
    case kDouble:
    case kLongLong:
    case kDateTime:
      return 8;
    default:
      return std::nullopt;
  }
}

// CHAR, ENUM and SET share a type: the first byte of the metadata is the real one, with two bits of a CHAR's
// length in it, turned over.
void SkipString(std::uint16_t metadata, BinlogBytes& bytes) {
  const std::size_t first = metadata & 0xFF;
  const std::size_t second = metadata >> 8;
  if (first == kEnum || first == kSet) return bytes.Skip(second);
  const std::size_t longest = ((first & 0x30) ^ 0x30) << 4 | second;
  bytes.Skip(bytes.Number(longest > 255 ? 2 : 1));
}

// False: a value of this type has a width that is not known here.
bool SkipValue(std::uint8_t type, std::uint16_t metadata, BinlogBytes& bytes) {
  if (const auto width = FixedBytes(type)) {
    bytes.Skip(*width);
    return true;
  }
  switch (type) {
    case kVarchar:
    case kVarcharCompressed:
    case kVarString:
      bytes.Skip(bytes.Number(metadata > 255 ? 2 : 1));
      return true;
    case kBlobCompressed:
    case kVector:
    case kJson:
    case kTinyBlob:
    case kMediumBlob:
    case kLongBlob:
    case kBlob:
    case kGeometry:
      if (metadata < 1 || metadata > 4) return false;
      bytes.Skip(bytes.Number(metadata));
      return true;
    case kString:
      SkipString(metadata, bytes);
      return true;
    case kEnum:
    case kSet:
      bytes.Skip(metadata >> 8);
      return true;
    case kBit:
      bytes.Skip((metadata >> 8) + ((metadata & 0xFF) > 0 ? 1 : 0));
      return true;
    case kNewDecimal:
      bytes.Skip(DecimalBytes(metadata));
      return true;
    case kTimestamp2:
      bytes.Skip(4 + (metadata + 1) / 2);
      return true;
    case kDateTime2:
      bytes.Skip(5 + (metadata + 1) / 2);
      return true;
    case kTime2:
      bytes.Skip(3 + (metadata + 1) / 2);
      return true;
    default:
      return false;
  }
}

bool IsSet(ByteSpan bitmap, std::size_t bit) { return (bitmap[bit / 8] >> (bit % 8) & 1) != 0; }

// Which columns the images of an event have.
struct Present {
  ByteSpan bitmap;
  std::size_t count = 0;
};

Present ReadPresent(std::size_t columns, BinlogBytes& bytes) {
  Present present{bytes.Take((columns + 7) / 8)};
  if (!bytes.good()) return present;
  for (std::size_t i = 0; i < columns; ++i) present.count += IsSet(present.bitmap, i) ? 1 : 0;
  return present;
}

struct Image {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> slice;
  std::optional<std::uint64_t> state;
};

// One row, before or after; nullopt: it makes no sense, or has a type that is not known here.
std::optional<Image> ReadImage(const BinlogColumns& columns, const Present& present, BinlogBytes& bytes) {
  Image image;
  const ByteSpan nulls = bytes.Take((present.count + 7) / 8);
  if (!bytes.good()) return std::nullopt;
  std::size_t place = 0;  // among those that are present
  for (std::size_t i = 0; i < columns.types.size(); ++i) {
    if (!IsSet(present.bitmap, i)) continue;
    if (IsSet(nulls, place++)) continue;
    if (i == kIdColumn) {
      image.id = bytes.Number(8);
    } else if (i == kSliceColumn) {
      image.slice = bytes.Number(2);
    } else if (i == kStateColumn) {
      image.state = bytes.Number(1);
    } else if (!SkipValue(columns.types[i], columns.metadata[i], bytes)) {
      return std::nullopt;
    }
  }
  if (!bytes.good()) return std::nullopt;
  return image;
}

}  // namespace

std::optional<BinlogColumns> BinlogColumns::Read(BinlogBytes& bytes) {
  const std::uint64_t count = bytes.PackedNumber();
  if (count == 0 || count > kMostColumns) return std::nullopt;
  BinlogColumns columns;
  const ByteSpan types = bytes.Take(count);
  columns.types.assign(types.begin(), types.end());
  BinlogBytes metadata(bytes.Take(bytes.PackedNumber()));
  for (const std::uint8_t type : columns.types)
    columns.metadata.push_back(static_cast<std::uint16_t>(metadata.Number(MetadataBytes(type))));
  if (!bytes.good() || !metadata.good()) return std::nullopt;
  return columns;
}

bool BinlogColumns::OfTaskTable() const {
  return types.size() > kStateColumn && types[kIdColumn] == kLongLong && types[kSliceColumn] == kShort &&
         types[kStateColumn] == kTiny;
}

std::optional<WaitingRows> ReadWaitingRows(const BinlogColumns& columns, BinlogRowsKind kind,
                                           BinlogBytes bytes) {
  if (!columns.OfTaskTable() || bytes.PackedNumber() != columns.types.size()) return std::nullopt;
  const bool updated = kind == BinlogRowsKind::Updated;
  const Present before = updated ? ReadPresent(columns.types.size(), bytes) : Present{};
  const Present after = ReadPresent(columns.types.size(), bytes);
  // An image without a column takes no bytes: there would be no end of them.
  if (!bytes.good() || after.count == 0 || (updated && before.count == 0)) return std::nullopt;
  std::set<std::uint32_t> slices;
  std::vector<std::uint64_t> ids;
  bool untold = false;
  while (bytes.left() > 0) {
    const std::optional<Image> was = updated ? ReadImage(columns, before, bytes) : Image{};
    if (!was) return std::nullopt;
    const std::optional<Image> is = ReadImage(columns, after, bytes);
    if (!is) return std::nullopt;
    // A minimal image has only what was changed: the rest is as before.
    const auto state = is->state ? is->state : was->state;
    const auto slice = is->slice ? is->slice : was->slice;
    const auto id = is->id ? is->id : was->id;
    if (state && *state != kWaitingState) continue;
    if (!slice || slices.size() == kMostSlices) return std::nullopt;
    slices.insert(static_cast<std::uint32_t>(*slice));
    untold = untold || !id || ids.size() == Ring::kMostRows;
    if (!untold) ids.push_back(*id);
  }
  if (untold) ids.clear();
  return WaitingRows{{slices.begin(), slices.end()}, std::move(ids)};
}

}  // namespace millrace::engine
