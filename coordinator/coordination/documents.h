// The documents in the nodes of a cluster: JSON that a person can read and set with zkCli. Readers say what
// is wrong, and pass over keys that a newer version may have added. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"
#include "framework/policy/eligibility.h"
#include "framework/policy/limit_shares.h"

namespace millrace::engine {

// workers/<id>: who is there, and what it takes.
struct WorkerDocument {
  std::string host;
  std::int64_t pid = 0;
  std::string incarnation;   // one life of the process; all incarnations of a worker have different ones
  std::uint32_t weight = 1;  // 1 … 1000
  WorkerLimits limits = {};
  // By shard: which database it found under that name (SchemaStore::Identity). Of others nothing is known.
  std::map<std::string, std::string> databases = {};
  std::string doorbell = {};  // host:port; empty: none
  std::string version = {};   // of the program
  // The whole of each limit that it follows (`handlers.H.limit`), by task type.
  LimitShares start_limits = {};
  bool operator==(const WorkerDocument&) const = default;
};

// Where the cluster names no shards each worker calls its own `--store` main: a line for each shard that is
// several databases, as these workers (by id) say, and what to do about it.
std::vector<std::string> DatabaseTroubles(const std::map<std::string, WorkerDocument>& workers);

// assign/<id>, and further pages assign/<id>/1, /2 …: the slices of one worker are those of all its pages.
// Written by the leader alone.
struct AssignDocument {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  std::vector<std::string> slices = {};  // sorted
  // The task types of each handler group that its slices name; empty: there is one group, all types.
  std::map<std::string, std::vector<std::string>> groups = {};
  // Of the first page alone (coordinator/leader/README.md): the worker's shares of the limits, the
  // incarnation that they are for, and what may have been in force when they were written.
  LimitShares shares = {};
  std::string shares_of = {};
  LimitShares shares_before = {};
  bool operator==(const AssignDocument&) const = default;
};

// Its children: a node for each breaker that is open, named by the task type.
inline constexpr const char* kBreakersNode = "/control/breaker";

// status/<id>: of what a worker writes there, what the leader goes by.
struct StatusDocument {
  std::string incarnation = {};                 // the life that wrote it
  std::uint64_t generation = 0;                 // of the assignment that is in force in it
  std::uint64_t shares_generation = 0;          // of the page whose shares are
  std::vector<std::string> lives = {};          // its incarnations in the shards
  std::map<std::string, LimitUse> limits = {};  // by task type
  std::set<std::string> breakers = {};          // task types that have one
};

// Of the (sorted) names below an assign node those of further pages: numbers from 1. What else somebody made
// there is none of our business.
std::vector<std::string> PagesOf(std::vector<std::string> names);

// epoch: the leader's term.
struct EpochDocument {
  std::uint64_t epoch = 0;
  std::string leader = {};       // the id of the worker or coordinator that leads
  std::string incarnation = {};  // and its life
  bool operator==(const EpochDocument&) const = default;
};

// election/<slot>: a candidate for the leader.
struct CandidateDocument {
  std::string id = {};           // of the worker or coordinator
  std::string incarnation = {};  // and its life
  // The shards that it can't read; sorted. nullopt: it has not found out yet.
  std::optional<std::vector<std::string>> unread = {};
  bool operator==(const CandidateDocument&) const = default;
};

// control/expect/<id>: a restart is announced; the slices are kept for it, a day at most.
inline constexpr std::chrono::seconds kLongestExpectation{86400};
struct ExpectDocument {
  std::string incarnation = {};  // the life that is expected to end; empty: not known
  std::uint32_t seconds = 60;    // from when the leader sees the node
};

// plan: what the leader tells people of its plan.
struct PlanDocument {
  std::uint64_t epoch = 0;
  std::uint64_t slices = 0;         // owned
  std::uint64_t moves_waiting = 0;  // for balance, until the cluster has been quiet
  bool holding = false;             // very many workers vanished at once: nothing moves for a while
  std::map<std::string, std::vector<std::string>> groups = {};  // as in AssignDocument
  std::uint64_t unplaceable = 0;
  std::vector<std::string> unplaceable_slices = {};  // the first of them
  std::vector<std::string> unrunnable = {};          // `shard: handler`
  std::vector<std::string> troubles = {};            // what keeps the leader from planning
  std::uint64_t on_probation = 0;                    // workers
  // The first of them: until when each gets no more slices, RFC 3339.
  std::map<std::string, std::string> probation = {};
  bool operator==(const PlanDocument&) const = default;
};

// control/limits/<id>: what operators limit a worker to while it runs.
struct LimitsDocument : WorkerLimits {
  // By task type: of a round of its scan in this worker, in place of the configuration's.
  std::map<std::string, std::uint32_t> max_rows = {};

  bool Any() const { return WorkerLimits::Any() || !max_rows.empty(); }
};

std::string ToText(const LimitsDocument& limits);
std::string ToText(const WorkerDocument& document);
std::string ToText(const EpochDocument& document);
std::string ToText(const CandidateDocument& document);
std::string ToText(const ExpectDocument& document);
std::string ToText(const AssignDocument& document);
std::string ToText(const PlanDocument& document);

Result<WorkerDocument> ReadWorker(std::string_view text);
Result<LimitsDocument> ReadLimits(std::string_view text);
Result<EpochDocument> ReadEpoch(std::string_view text);
Result<CandidateDocument> ReadCandidate(std::string_view text);
Result<ExpectDocument> ReadExpect(std::string_view text);
Result<AssignDocument> ReadAssign(std::string_view text);
Result<PlanDocument> ReadPlan(std::string_view text);
Result<StatusDocument> ReadStatus(std::string_view text);

// What is told in a node has to fit into it, however much there is to tell: the first `most` lines, of long
// ones the beginning; then `and 7 more`.
std::vector<std::string> Brief(const std::vector<std::string>& lines, std::size_t most);

// The keys of status/<id> that the commands read of what a worker writes; what else stands there is for
// people.
namespace status_key {
inline constexpr char kRefused[] = "refused";        // of the cluster's words; a list of texts
inline constexpr char kConfig[] = "config";          // of each part an object:
inline constexpr char kConfigVersion[] = "version";  // of its node, as it was read last
inline constexpr char kConfigMade[] =
    "made";  // the transaction that made that node (czxid): versions count anew
inline constexpr char kConfigRefused[] = "refused";  // where that is not in force: why
inline constexpr char kConfigTypes[] =
    "types";  // of `handlers`: task types whose handler refuses it, and why
inline constexpr char kRefusals[] = "refusals";  // what it can't carry out; a list of texts
inline constexpr char kIgnored[] = "ignored";    // what it was started with and does not follow; texts
inline constexpr char kPermitsHeldUp[] = "permits_held_up";  // why none can be had; a text
inline constexpr char kPermitsLocked[] = "permits_locked";   // types of which others have locked one; a list
inline constexpr char kShards[] = "shards";                  // an object for each
inline constexpr char kError[] = "error";                    // of a shard: why it can't work there
inline constexpr char kDoorbell[] = "doorbell";              // likewise: `on`, or `off` and why
inline constexpr char kUnrunnable[] = "unrunnable";  // likewise: types with due tasks that it can't run
inline constexpr char kResting[] =
    "resting";  // likewise: tables of which nothing is claimed, and why; an object
inline constexpr char kIncarnation[] = "incarnation";  // of the worker; and of a shard: its life in that
inline constexpr char kGeneration[] = "generation";    // of the assignment in force
inline constexpr char kSharesGeneration[] = "shares_generation";  // of the page whose shares are
inline constexpr char kLimits[] = "limits";                       // by task type, what it makes of its share:
inline constexpr char kUses[] = "uses";                           // starts a second
inline constexpr char kSaved[] = "saved";                         // of a start, at less than one a second
inline constexpr char kPlaced[] = "placed";                       // of what runs: it holds no permit
inline constexpr char kWaiting[] = "waiting";                     // claimed, and not started
inline constexpr char kWantsRate[] = "wants_rate";
inline constexpr char kWantsConcurrency[] = "wants_concurrency";
inline constexpr char kShare[] = "share";           // in force, where the whole is not its own
inline constexpr char kPermits[] = "permits";       // by task type that is held by permits: an object
inline constexpr char kPermitsHeld[] = "held";      // of those, by the worker
inline constexpr char kRounds[] = "rounds";         // of a shard: by task type that is scanned in rounds
inline constexpr char kRoundOpen[] = "open";        // whether rows of the newest may be claimed yet
inline constexpr char kRoundNext[] = "next";        // when the next one begins, where that is known
inline constexpr char kBreakers[] = "breakers";     // by task type that has one: an object
inline constexpr char kNextProbe[] = "next_probe";  // of one that is open and is probed: when, at the soonest
inline constexpr char kBands[] = "bands";           // of a shard: those that have something; a list
inline constexpr char kBandHandler[] = "handler";   // of a band
inline constexpr char kBandPriority[] = "priority";  // its range, `5-9`
inline constexpr char kBandFailures[] = "failures";  // likewise
inline constexpr char kBandNext[] = "next";          // when it may be scanned again
inline constexpr char kScanSpeed[] = "scan_speed";   // of a shard; below 1: the brake holds. Absent: 1
inline constexpr char kFull[] = "full";        // task types whose lane has no room for what is due; a list
inline constexpr char kPlugins[] = "plugins";  // that it has loaded, `name version`; a list of texts
inline constexpr char kRunning[] = "running";  // handlers
inline constexpr char kLag[] = "lag_ms";       // the largest of its shards
inline constexpr char kClaimRate[] = "claims_per_second";
inline constexpr char kSettleRate[] = "settles_per_second";
}  // namespace status_key

// A worker's share of a limit, in its assignment and, as it is in force, in its status.
namespace share_key {
inline constexpr char kRate[] = "rate";                // starts a second
inline constexpr char kSaved[] = "saved";              // of a start, at less than one a second
inline constexpr char kConcurrency[] = "concurrency";  // attempts at a time
inline constexpr char kPermits[] = "permits";  // so many there are, of all workers together; instead of it
}  // namespace share_key

}  // namespace millrace::engine
