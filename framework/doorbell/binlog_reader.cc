#include "framework/doorbell/binlog_reader.h"

#include <boost/algorithm/string/predicate.hpp>
#include <locale>

namespace millrace::engine {
namespace {

constexpr std::size_t kHeader = 19;
constexpr std::size_t kChecksum = 4;
constexpr std::uint64_t kArtificial = 0x20;  // made for the connection, and in no file
constexpr std::size_t kMostTables = 4096;    // described at once; the servers describe one before each use

// Types of events: up to 42 both servers' or MySQL's, from 160 on MariaDB's.
enum EventType : unsigned {
  kQuery = 2,
  kRotate = 4,
  kFormatDescription = 15,
  kExecuteLoadQuery = 18,
  kTableMap = 19,
  kWriteRowsV1 = 23,
  kUpdateRowsV1 = 24,
  kHeartbeat = 27,
  kWriteRows = 30,
  kUpdateRows = 31,
  kPartialUpdateRows = 39,
  kTransactionPayload = 40,
  kHeartbeatV2 = 41,
  kQueryCompressed = 165,
  kWriteRowsCompressedV1 = 166,
  kUpdateRowsCompressedV1 = 167,
  kWriteRowsCompressed = 169,
  kUpdateRowsCompressed = 170,
};

// Statements that change no row.
constexpr const char* kIdleStatements[] = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "START TRANSACTION"};

constexpr std::string_view kBeats = "millrace_beats";

bool IsIdle(std::string_view statement) {
  for (const char* idle : kIdleStatements) {
    if (boost::algorithm::istarts_with(statement, idle)) return true;
  }
  return false;
}

}  // namespace

bool BinlogReader::IsOurs(std::string_view database) const {
  return letters_ == Case::Ignored ? boost::algorithm::iequals(database, database_, std::locale::classic())
                                   : database == database_;
}

bool BinlogReader::Names(std::string_view statement) const {
  return letters_ == Case::Ignored ? boost::algorithm::icontains(statement, database_, std::locale::classic())
                                   : statement.find(database_) != statement.npos;
}

BinlogReader::Heard BinlogReader::Read(ByteSpan event) {
  const bool has_checksum = checksums_ && event.size() >= kHeader + kChecksum;
  BinlogBytes bytes(has_checksum ? event.first(event.size() - kChecksum) : event);
  const auto written = static_cast<std::uint32_t>(bytes.Number(4));
  const auto type = static_cast<unsigned>(bytes.Number(1));
  bytes.Skip(12);  // server id, length, position
  const bool artificial = (bytes.Number(2) & kArtificial) != 0;
  if (!bytes.good()) return {};
  Heard heard;
  if (written != 0) heard.logged_at = written;  // events that are made for the connection have none
  switch (type) {
    case kHeartbeat:
    case kHeartbeatV2:
      heard.caught_up = true;
      heard.logged_at.reset();
      break;
    case kRotate:
      heard.rotated = !artificial;
      heard.logged_at.reset();
      break;
    case kFormatDescription:
      Begin(event);
      heard.logged_at.reset();
      break;
    case kTableMap:
      MapTable(bytes, heard);
      break;
    case kQuery:
    case kQueryCompressed:
    case kExecuteLoadQuery:
      heard.ring = Statement(type, bytes);
      heard.wrote = heard.ring.has_value();
      break;
    case kTransactionPayload:
      heard.ring = Ring{};
      heard.wrote = true;
      break;
    case kWriteRowsV1:
    case kUpdateRowsV1:
    case kWriteRows:
    case kUpdateRows:
    case kPartialUpdateRows:
    case kWriteRowsCompressedV1:
    case kUpdateRowsCompressedV1:
    case kWriteRowsCompressed:
    case kUpdateRowsCompressed:
      heard.ring = Rows(type, bytes);
      break;
    default:
      break;
  }
  return heard;
}

// A file begins. At the end of its description stand the kind of checksums and one of its own. A server that
// was started anew counts its tables from the beginning.
void BinlogReader::Begin(ByteSpan event) {
  tables_.clear();
  if (event.size() > kHeader + kChecksum) checksums_ = event[event.size() - kChecksum - 1] != 0;
}

void BinlogReader::MapTable(BinlogBytes bytes, Heard& heard) {
  const std::uint64_t number = bytes.Number(6);
  bytes.Skip(2);
  const std::string_view database = bytes.Text(bytes.Number(1));
  bytes.Skip(1);
  const std::string_view text = bytes.Text(bytes.Number(1));
  bytes.Skip(1);
  const bool ours = bytes.good() && IsOurs(database);
  heard.beat = ours && text == kBeats;
  heard.wrote = !bytes.good() || (ours && !heard.beat);
  if (bytes.good()) tables_.erase(number);
  if (!ours) return;
  const auto name = ParseTableName(text);
  if (!name || !watched_(*name)) return;
  if (tables_.size() >= kMostTables) tables_.clear();
  tables_.insert_or_assign(number, Table{*name, BinlogColumns::Read(bytes)});
}

std::optional<Ring> BinlogReader::Rows(unsigned type, BinlogBytes bytes) const {
  const auto table = tables_.find(bytes.Number(6));
  bytes.Skip(2);
  if (!bytes.good() || table == tables_.end()) return std::nullopt;
  const Ring whole{table->second.name, {}};
  const bool inserted = type == kWriteRowsV1 || type == kWriteRows;
  const bool updated = type == kUpdateRowsV1 || type == kUpdateRows;
  if (!table->second.columns || (!inserted && !updated)) return whole;
  if (type == kWriteRows || type == kUpdateRows) {  // more is said in between, with its length first
    const std::uint64_t more = bytes.Number(2);
    bytes.Skip(more < 2 ? 0 : more - 2);
  }
  auto rows = ReadWaitingRows(*table->second.columns,
                              inserted ? BinlogRowsKind::Inserted : BinlogRowsKind::Updated, bytes);
  if (!rows) return whole;
  if (rows->slices.empty()) return std::nullopt;
  return Ring{table->second.name, std::move(rows->slices), std::move(rows->ids)};
}

std::optional<Ring> BinlogReader::Statement(unsigned type, BinlogBytes bytes) const {
  bytes.Skip(8);  // the thread, how long it took
  const std::uint64_t database_size = bytes.Number(1);
  bytes.Skip(2);  // the error
  const std::uint64_t status_size = bytes.Number(2);
  if (type == kExecuteLoadQuery) bytes.Skip(13);  // the file
  bytes.Skip(status_size);
  const std::string_view database = bytes.Text(database_size);
  bytes.Skip(1);
  if (!bytes.good()) return std::nullopt;
  const std::string_view statement = bytes.Text(bytes.left());
  const bool compressed = type == kQueryCompressed;
  if (!compressed && IsIdle(statement)) return std::nullopt;
  const bool ends_others = statement.starts_with("XA COMMIT");  // whose rows stand before it
  if (!IsOurs(database) && !compressed && !ends_others && !Names(statement)) return std::nullopt;
  return Ring{};
}

}  // namespace millrace::engine
