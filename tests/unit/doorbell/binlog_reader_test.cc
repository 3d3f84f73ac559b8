#include "framework/doorbell/binlog_reader.h"

#include <gmock/gmock.h>

#include <memory>

#include "framework/base/random.h"
#include "recorded_events.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Bytes = std::vector<unsigned char>;

constexpr std::uint8_t kQuery = 2;
constexpr std::uint8_t kRotate = 4;
constexpr std::uint8_t kFormatDescription = 15;
constexpr std::uint8_t kTableMap = 19;
constexpr std::uint8_t kWriteRowsV1 = 23;
constexpr std::uint8_t kUpdateRowsV1 = 24;
constexpr std::uint8_t kDeleteRowsV1 = 25;
constexpr std::uint8_t kHeartbeat = 27;
constexpr std::uint8_t kWriteRows = 30;
constexpr std::uint8_t kPayload = 40;
constexpr std::uint8_t kWriteRowsCompressedV1 = 166;

// Writes an event as a server does.
class Event {
 public:
  explicit Event(std::uint8_t type, std::uint32_t at = 1'700'000'000) {
    Number(at, 4).Number(type, 1).Number(7, 4).Number(0, 4).Number(4711, 4).Number(0, 2);
  }
  Event& Number(std::uint64_t number, int width) {
    for (int i = 0; i < width; ++i, number >>= 8) bytes_.push_back(static_cast<unsigned char>(number));
    return *this;
  }
  Event& Text(const std::string& text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  // With its length before it, and a zero behind it.
  Event& Name(const std::string& text) { return Number(text.size(), 1).Text(text).Number(0, 1); }
  operator const Bytes&() const { return bytes_; }

 private:
  Bytes bytes_;
};

// id BIGINT, slice SMALLINT, state TINYINT, handler VARCHAR(64), run_at DATETIME(6), params MEDIUMTEXT
Event MapOf(std::uint64_t number, const std::string& database, const std::string& table) {
  Event event(kTableMap);
  event.Number(number, 6).Number(1, 2).Name(database).Name(table);
  event.Number(6, 1).Number(8, 1).Number(2, 1).Number(1, 1).Number(15, 1).Number(18, 1).Number(252, 1);
  return event.Number(4, 1).Number(64, 2).Number(6, 1).Number(3, 1).Number(0, 1);
}

struct Row {
  std::uint64_t slice = 0;
  std::uint64_t state = 0;
  std::uint64_t id = 1;
};

void AddRow(Event& event, const Row& row) {
  event.Number(0, 1).Number(row.id, 8).Number(row.slice, 2).Number(row.state, 1);
  event.Number(4, 1).Text("noop").Number(0, 8).Number(2, 3).Text("{}");
}

Event Inserted(std::uint64_t number, const std::vector<Row>& rows, std::uint8_t type = kWriteRowsV1) {
  Event event(type);
  event.Number(number, 6).Number(1, 2);
  if (type >= kWriteRows) event.Number(2, 2);
  event.Number(6, 1).Number(0x3F, 1);
  for (const Row& row : rows) AddRow(event, row);
  return event;
}

Event Updated(std::uint64_t number, const Row& before, const Row& after) {
  Event event(kUpdateRowsV1);
  event.Number(number, 6).Number(1, 2).Number(6, 1).Number(0x3F, 1).Number(0x3F, 1);
  AddRow(event, before);
  AddRow(event, after);
  return event;
}

Event Statement(const std::string& database, const std::string& text) {
  Event event(kQuery);
  event.Number(1, 4).Number(0, 4).Number(database.size(), 1).Number(0, 2).Number(5, 2).Text("12345");
  return event.Text(database).Number(0, 1).Text(text);
}

class BinlogReaderTest : public ::testing::Test {
 protected:
  std::optional<Ring> Read(const Bytes& event) { return reader_.Read(event).ring; }

  BinlogReader reader_{"shop", [](const TableName& table) { return table == "tasks"; }};
};

TEST_F(BinlogReaderTest, AnInsertedRowRingsWithItsSlice) {
  EXPECT_EQ(Read(MapOf(9, "shop", "tasks")), std::nullopt);
  EXPECT_EQ(Read(Inserted(9, {{3, 0, 7}, {1, 0, 8}, {3, 0, 9}})), (Ring{kDefaultTable, {1, 3}, {7, 8, 9}}));
  EXPECT_EQ(Read(Inserted(9, {{12, 0}}, kWriteRows)), (Ring{kDefaultTable, {12}, {1}}))
      << "as MySQL writes it";
}

TEST_F(BinlogReaderTest, ManyRowsAreNotToldOneByOne) {
  Read(MapOf(9, "shop", "tasks"));
  std::vector<Row> rows;
  Ring told{kDefaultTable, {3}};
  for (std::uint64_t id = 1; id <= Ring::kMostRows; ++id) {
    rows.push_back({3, 0, id});
    told.rows.push_back(id);
  }
  EXPECT_EQ(Read(Inserted(9, rows)), told);
  rows.push_back({3, 0, 100});
  EXPECT_EQ(Read(Inserted(9, rows)), (Ring{kDefaultTable, {3}}));
}

TEST_F(BinlogReaderTest, WhatDoesNotWaitRingsNobody) {
  Read(MapOf(9, "shop", "tasks"));
  EXPECT_EQ(Read(Inserted(9, {{3, 3}})), std::nullopt) << "held";
  EXPECT_EQ(Read(Updated(9, {3, 0}, {3, 2})), std::nullopt) << "claimed";
  Event gone(kDeleteRowsV1);
  EXPECT_EQ(Read(gone.Number(9, 6).Number(1, 2)), std::nullopt) << "settled";
  EXPECT_EQ(Read(Updated(9, {3, 3}, {3, 0})), (Ring{kDefaultTable, {3}, {1}})) << "released";
}

TEST_F(BinlogReaderTest, AnotherTableOrDatabaseRingsNobody) {
  Read(MapOf(9, "other", "tasks"));
  EXPECT_EQ(Read(Inserted(9, {{3, 0}})), std::nullopt);
  Read(MapOf(9, "shop", "orders"));
  EXPECT_EQ(Read(Inserted(9, {{3, 0}})), std::nullopt);
  Read(MapOf(9, "shop", "tasks"));
  EXPECT_EQ(Read(Inserted(8, {{3, 0}})), std::nullopt) << "a number that was never told";
}

TEST_F(BinlogReaderTest, ADatabaseIsKnownByItsNameAsTheServerComparesNames) {
  const auto all = [](const TableName&) { return true; };
  BinlogReader exact("Shop", all);
  BinlogReader any("Shop", all, BinlogReader::Case::Ignored);
  const Bytes map = MapOf(9, "shop", "tasks");
  const Bytes rows = Inserted(9, {{3, 0}});
  exact.Read(map);
  any.Read(map);
  EXPECT_EQ(exact.Read(rows).ring, std::nullopt);
  EXPECT_EQ(any.Read(rows).ring, (Ring{kDefaultTable, {3}, {1}}));
  const Bytes elsewhere = Statement("other", "INSERT INTO SHOP.tasks (handler) VALUES ('noop')");
  EXPECT_EQ(exact.Read(elsewhere).ring, std::nullopt);
  EXPECT_EQ(any.Read(elsewhere).ring, Ring{});
}

TEST_F(BinlogReaderTest, ANumberMeansWhatItMeantLast) {
  Read(MapOf(9, "shop", "tasks"));
  Read(MapOf(9, "shop", "orders"));
  EXPECT_EQ(Read(Inserted(9, {{3, 0}})), std::nullopt);
  Read(MapOf(9, "shop", "tasks"));
  Read(Event(kFormatDescription));
  EXPECT_EQ(Read(Inserted(9, {{3, 0}})), std::nullopt) << "the server was started anew";
}

TEST_F(BinlogReaderTest, ChecksumsArePassedOverWhereTheFileHasThem) {
  Event description(kFormatDescription);
  Read(description.Text("10.11.19-MariaDB").Number(1, 1).Number(4711, 4));
  const auto checked = [](Event event) { return event.Number(0xFFFFFFFF, 4); };
  Read(checked(MapOf(9, "shop", "tasks")));
  EXPECT_EQ(Read(checked(Inserted(9, {{3, 0}}))), (Ring{kDefaultTable, {3}, {1}}));
}

TEST_F(BinlogReaderTest, TheEndOfAFileIsToldAndItsNameForAConnectionIsNot) {
  EXPECT_TRUE(reader_.Read(Bytes(Event(kRotate).Number(4, 8).Text("bin.000002"))).rotated);
  Bytes made = Event(kRotate, 0).Number(4, 8).Text("bin.000002");
  made[17] = 0x20;
  EXPECT_FALSE(reader_.Read(made).rotated);
}

TEST_F(BinlogReaderTest, WhatCanNotBeReadRingsForTheWholeTable) {
  Read(MapOf(9, "shop", "tasks"));
  const Ring whole{kDefaultTable, {}};
  Bytes cut = Inserted(9, {{3, 0}});
  cut.pop_back();
  EXPECT_EQ(Read(cut), whole);
  EXPECT_EQ(Read(Event(kWriteRowsCompressedV1).Number(9, 6).Number(1, 2).Text("zzz")), whole);
  EXPECT_EQ(Read(Event(kWriteRowsV1).Number(9, 6).Number(1, 2).Number(5, 1).Number(0x1F, 1)), whole)
      << "another number of columns";
  EXPECT_EQ(Read(Event(kWriteRowsV1).Number(9, 6).Number(1, 2).Number(6, 1).Number(0, 1).Number(0, 8)), whole)
      << "rows without a column would have no end";
  std::vector<Row> many;
  for (std::uint64_t slice = 0; slice < 65; ++slice) many.push_back({slice, 0});
  EXPECT_EQ(Read(Inserted(9, many)), whole);
}

TEST_F(BinlogReaderTest, ATableOfAnotherShapeRingsAsAWhole) {
  Event map(kTableMap);
  map.Number(9, 6).Number(1, 2).Name("shop").Name("tasks");
  map.Number(2, 1).Number(3, 1).Number(3, 1).Number(0, 1).Number(0, 1);
  Read(map);
  EXPECT_EQ(Read(Event(kWriteRowsV1).Number(9, 6).Number(1, 2).Number(2, 1).Number(3, 1).Number(0, 9)),
            (Ring{kDefaultTable, {}}));
}

TEST_F(BinlogReaderTest, AStatementRingsInItsDatabaseOrWhereItNamesIt) {
  EXPECT_EQ(Read(Statement("shop", "INSERT INTO tasks (handler) VALUES ('noop')")), Ring{});
  EXPECT_EQ(Read(Statement("other", "INSERT INTO shop.tasks (handler) VALUES ('noop')")), Ring{});
  EXPECT_EQ(Read(Statement("other", "INSERT INTO orders VALUES (1)")), std::nullopt);
  for (const char* idle : {"BEGIN", "COMMIT", "begin", "SAVEPOINT `a`"})
    EXPECT_EQ(Read(Statement("shop", idle)), std::nullopt) << idle;
}

TEST_F(BinlogReaderTest, ATransactionThatCanNotBeReadRings) {
  EXPECT_EQ(Read(Event(kPayload).Text("zstd")), Ring{});
}

TEST_F(BinlogReaderTest, TellsBeatsFromWhateverElseIsWrittenIntoTheDatabase) {
  const auto read = [&](const Bytes& event) {
    const BinlogReader::Heard heard = reader_.Read(event);
    return std::pair(heard.beat, heard.wrote);
  };
  const std::pair beat(true, false), write(false, true), nothing(false, false);
  EXPECT_EQ(read(MapOf(9, "shop", "millrace_beats")), beat);
  for (const char* table : {"tasks", "tasks_done", "millrace_batches", "Orders"})
    EXPECT_EQ(read(MapOf(9, "shop", table)), write) << table;
  EXPECT_EQ(read(MapOf(9, "other", "tasks")), nothing);
  EXPECT_EQ(read(Statement("shop", "ALTER TABLE tasks ADD COLUMN note TEXT")), write);
  EXPECT_EQ(read(Statement("shop", "BEGIN")), nothing);
  EXPECT_EQ(read(Statement("other", "INSERT INTO orders VALUES (1)")), nothing);
  EXPECT_EQ(read(Statement("other", "XA COMMIT 'x'")), write) << "its rows were logged before";
  EXPECT_EQ(read(Event(kPayload).Text("zstd")), write) << "nobody can tell";
  EXPECT_EQ(read(Event(kTableMap).Number(9, 6)), write) << "nor here";
}

TEST_F(BinlogReaderTest, AHeartbeatSaysThatThereIsNothingMore) {
  const auto heard = reader_.Read(Bytes(Event(kHeartbeat).Text("mariadb-bin.000001")));
  EXPECT_TRUE(heard.caught_up);
  EXPECT_EQ(heard.logged_at, std::nullopt);
  EXPECT_EQ(reader_.Read(Bytes(Statement("shop", "BEGIN"))).logged_at, 1'700'000'000u);
}

TEST_F(BinlogReaderTest, ReadsWhatARealServerWrote) {
  std::map<std::string, std::vector<Ring>> rings;
  for (const RecordedEvent& event : RecordedByMariadb()) {
    auto& of_statement = rings[event.what];
    if (const auto ring = Read(event.bytes)) of_statement.push_back(*ring);
  }
  EXPECT_THAT(rings["plain INSERT"], ElementsAre(Ring{kDefaultTable, {5}, {1}}));
  EXPECT_THAT(rings["three rows"], ElementsAre(Ring{kDefaultTable, {0, 15}, {2, 3, 4}}));
  EXPECT_THAT(rings["every column"], ElementsAre(Ring{kDefaultTable, {7}, {5}}));
  EXPECT_THAT(rings["claim"], IsEmpty());
  EXPECT_THAT(rings["back to waiting"], ElementsAre(Ring{kDefaultTable, {5}, {1}}));
  EXPECT_THAT(rings["settle"], IsEmpty());
  EXPECT_THAT(rings["minimal image"], ElementsAre(Ring{kDefaultTable, {}})) << "its slice is not in the log";
  EXPECT_THAT(rings["another table"], IsEmpty());
  EXPECT_THAT(rings["another database"], IsEmpty());
  EXPECT_THAT(rings["a statement"], ElementsAre(Ring{}));
  EXPECT_THAT(rings["compressed"], ElementsAre(Ring{kDefaultTable, {}}));
}

// Each event stands in memory of its own, so that a sanitizer's build sees the first byte that is read
// beyond.
TEST_F(BinlogReaderTest, NothingIsReadBeyondAnEventThatLies) {
  Random random(Random::FromSystem().Next());
  std::vector<Bytes> events{MapOf(9, "shop", "tasks"), Inserted(9, {{3, 0}, {1, 2}}),
                            Updated(9, {3, 0}, {3, 2}), Inserted(9, {{3, 0}}, kWriteRows),
                            Statement("shop", "DELETE FROM tasks")};
  for (const RecordedEvent& event : RecordedByMariadb()) events.push_back(event.bytes);
  for (int round = 0; round < 20'000; ++round) {
    Bytes lie = events[random.Below(events.size())];
    const std::size_t kept = random.Below(4) == 0 ? random.Below(lie.size() + 1) : lie.size();
    lie.resize(kept);
    for (std::uint64_t i = random.Below(4); i > 0 && !lie.empty(); --i)
      lie[random.Below(lie.size())] = static_cast<unsigned char>(random.Below(4) == 0 ? 0xFF : random.Next());
    const auto copy = std::make_unique<unsigned char[]>(lie.size());
    std::copy(lie.begin(), lie.end(), copy.get());
    const auto heard = reader_.Read(ByteSpan(copy.get(), lie.size()));
    if (!heard.ring) continue;
    EXPECT_LE(heard.ring->slices.size(), 64u);
    EXPECT_TRUE(!heard.ring->table || *heard.ring->table == "tasks");
  }
}

}  // namespace
}  // namespace millrace::engine
