// The rows of millrace_permits. Why these statements keep two from holding one permit:
// framework/store/README.md, "Permits".
#include "framework/store/permit_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr const char* kPermitRows =
    "SELECT p.handler,p.number,p.turn,p.incarnation,i.id,i.worker,i.dead,p.task,p.attempt,p.taken_at FROM "
    "millrace_permits p LEFT JOIN millrace_incarnations i ON i.number=p.incarnation WHERE p.handler";

Permit PermitOf(const Row& row) {
  Permit permit;
  permit.handler = row.Text(1);
  permit.number = static_cast<std::uint32_t>(row.Number(2));
  permit.turn = row.Number(3);
  if (row.Number(4) == kNobody) return permit;
  const bool gone = row.Null(5);
  permit.holder = gone ? NumberText(row.Number(4)) : row.Text(5);
  permit.worker = row.Text(6);
  permit.lapsed = gone || row.Number(7) != 0;
  permit.task = row.Text(8);
  permit.attempt = static_cast<std::uint32_t>(row.Number(9));
  permit.taken_at = row.Time(10);
  return permit;
}

class SqlPermitStore final : public PermitStore {
 public:
  SqlPermitStore(std::unique_ptr<Connection> connection, Claimers& claimers)
      : connection_(std::move(connection)), db_(*connection_), claimers_(claimers) {}

  Result<std::vector<Permit>> Permits(std::span<const std::string> handlers) override {
    if (handlers.empty()) return std::vector<Permit>{};
    return Read(" IN (" + Repeat("?", handlers.size()) + ")",
                std::vector<Value>(handlers.begin(), handlers.end()));
  }
  Result<std::vector<Permit>> Holders() override { return Read("<>'' AND p.incarnation<>0", {}); }

  Status Make(const std::string& handler, std::uint32_t count) override {
    std::vector<Value> values;
    for (std::uint32_t number = 1; number <= count; ++number) {
      values.insert(values.end(), {handler, number});
    }
    if (count == 0) return {};
    BOOST_OUTCOME_TRYV(
        db_.Write("$enter INTO millrace_permits (handler,number) VALUES " + Repeat("(?,?)", count), values));
    return {};
  }

  Result<std::vector<PermitAnswer>> Change(const std::string& incarnation,
                                           std::span<const PermitChange> changes) override {
    BOOST_OUTCOME_TRY(claimer, claimers_.ByName(db_, incarnation));
    if (changes.size() == 1) return WriteFree(claimer.number, changes);  // a transaction by itself
    Transaction transaction(db_);
    BOOST_OUTCOME_TRYV(transaction.Begin());
    BOOST_OUTCOME_TRY(answers, WriteFree(claimer.number, changes));
    BOOST_OUTCOME_TRYV(transaction.Commit());
    return answers;
  }

  Result<std::string> Home() override {
    std::string home;
    BOOST_OUTCOME_TRYV(db_.Query("SELECT task FROM millrace_permits WHERE handler='' AND number=0", {},
                                 [&](const Row& row) { home = row.Text(1); }));
    return home;
  }
  Status NameHome(const std::string& home) override {
    BOOST_OUTCOME_TRYV(
        db_.Write("$enter INTO millrace_permits (handler,number,task) VALUES ('',0,?)", {home}));
    return {};
  }

 private:
  using Places = std::set<std::pair<std::string, std::uint64_t>>;  // handler, number

  // Which rows somebody else has locked by now; those that nobody has are ours until the transaction ends.
  Result<Places> Locked(std::span<const PermitChange> changes) {
    BOOST_OUTCOME_TRY(free, PlacesOf(changes, "$free"));
    if (free.size() == changes.size()) return Places{};
    BOOST_OUTCOME_TRY(locked, PlacesOf(changes, ""));
    std::erase_if(locked, [&](const auto& place) { return free.contains(place); });
    return locked;
  }
  Result<Places> PlacesOf(std::span<const PermitChange> changes, const std::string& lock) {
    Places places;
    while (!changes.empty()) {
      const std::span<const PermitChange> some = changes.first(std::min(changes.size(), kMaxBatchRows));
      std::vector<Value> values;
      for (const PermitChange& change : some) values.insert(values.end(), {change.handler, change.number});
      BOOST_OUTCOME_TRYV(
          db_.Query("SELECT handler,number FROM millrace_permits$primary WHERE (handler,number)" +
                        InTuples("(?,?)", some.size()) + " ORDER BY handler,number" + lock,
                    values, [&](const Row& row) { places.emplace(row.Text(1), row.Number(2)); }));
      changes = changes.subspan(some.size());
    }
    return places;
  }

  Result<std::vector<Permit>> Read(const std::string& which, const std::vector<Value>& values) {
    std::vector<Permit> permits;
    BOOST_OUTCOME_TRYV(db_.Query(kPermitRows + which + " ORDER BY p.handler,p.number", values,
                                 [&](const Row& row) { permits.push_back(PermitOf(row)); }));
    return permits;
  }

  Result<std::vector<PermitAnswer>> WriteFree(std::uint64_t me, std::span<const PermitChange> changes) {
    BOOST_OUTCOME_TRY(locked, Locked(changes));
    std::vector<PermitAnswer> answers;
    for (const PermitChange& change : changes) {
      if (locked.contains({change.handler, change.number})) {
        answers.push_back(PermitAnswer::Locked);
        continue;
      }
      BOOST_OUTCOME_TRY(hit, Write(me, change));
      answers.push_back(hit ? PermitAnswer::Done : PermitAnswer::Refused);
    }
    return answers;
  }

  // A holder is replaced once it is marked dead, and never while it lives. The locking EXISTS keeps a
  // takeover from the writer from slipping in between, as a claim's does.
  Result<bool> Write(std::uint64_t me, const PermitChange& change) {
    const auto& [handler, number, turn, to, task, attempt] = change;
    std::string set, where;
    std::vector<Value> values, conditions;
    if (to == PermitChange::To::Held) {
      set = ",incarnation=?,task=?,attempt=?,taken_at=$now";
      values = {me, task, attempt};
      where =
          " AND (incarnation IN (0,?) OR NOT EXISTS (SELECT 1 FROM millrace_incarnations holder WHERE "
          "holder.number=millrace_permits.incarnation AND holder.dead=0)) AND EXISTS (SELECT 1 FROM "
          "millrace_incarnations WHERE number=? AND dead=0$share)";
      conditions = {me, me};
    } else if (to == PermitChange::To::Free) {
      set = ",incarnation=0,task='',attempt=0";
      where = " AND incarnation=?";
      conditions = {me};
    }
    values.insert(values.end(), {handler, number, turn});
    values.insert(values.end(), conditions.begin(), conditions.end());
    BOOST_OUTCOME_TRY(hit, db_.Write("UPDATE millrace_permits$primary SET turn=turn+1" + set +
                                         " WHERE handler=? AND number=? AND turn=?" + where,
                                     values));
    return hit == 1;
  }

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
  Claimers& claimers_;
};

}  // namespace

std::unique_ptr<PermitStore> OpenPermits(std::unique_ptr<Connection> connection, Claimers& claimers) {
  return std::make_unique<SqlPermitStore>(std::move(connection), claimers);
}

}  // namespace millrace::engine::sql
