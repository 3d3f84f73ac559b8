#include "coordinator/app/cluster/cluster_snapshot.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "coordinator/leader/plan_writer.h"
#include "coordinator/planner/handler_groups.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"
#include "framework/policy/load_balance.h"
#include "framework/task/slice_name.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Every child of a folder that is still there, by name.
Result<std::map<std::string, TreeNode>> ReadNodes(ClusterClient& client, const std::string& folder) {
  BOOST_OUTCOME_TRY(names, client.List(folder));
  std::map<std::string, TreeNode> nodes;
  for (const std::string& name : names) {
    BOOST_OUTCOME_TRY(node, client.Get(folder + "/" + name));
    if (node) nodes[name] = std::move(*node);
  }
  return nodes;
}

Result<std::map<std::string, std::string>> ReadFolder(ClusterClient& client, const std::string& folder) {
  BOOST_OUTCOME_TRY(nodes, ReadNodes(client, folder));
  std::map<std::string, std::string> texts;
  for (auto& [name, node] : nodes) texts[name] = std::move(node.data);
  return texts;
}

StoredPage Page(const std::string& name, AssignDocument document) {
  return {name, std::make_shared<const AssignDocument>(std::move(document))};
}

// The first page is `text`.
Result<AssignDocument> ReadAssignment(ClusterClient& client, const std::string& id, const std::string& text) {
  BOOST_OUTCOME_TRY(further, ReadFolder(client, "/assign/" + id));
  std::vector<std::string> names;
  for (const auto& [name, page] : further) names.push_back(name);
  std::vector<StoredPage> pages;
  for (const std::string& name : PagesOf(std::move(names)))
    pages.push_back(Page(name, ReadAssign(further.at(name)).value_or(AssignDocument{})));
  BOOST_OUTCOME_TRY(first, ReadAssign(text));
  pages.push_back(Page("", std::move(first)));
  return *Together(pages);
}

// Keeps what was read, or a word of why it can't be.
template <class Document>
bool Take(const std::string& node, Result<Document> document, Document& into, ClusterSnapshot& snapshot) {
  if (document) {
    into = std::move(*document);
    return true;
  }
  snapshot.unreadable.push_back(node + ": " + document.error().message);
  return false;
}

Status ReadControls(ClusterClient& client, ClusterSnapshot& snapshot) {
  BOOST_OUTCOME_TRY(left, ReadFolder(client, "/leave"));
  for (const auto& [incarnation, id] : left) snapshot.left.insert(id);
  BOOST_OUTCOME_TRY(draining, client.List("/control/drain"));
  snapshot.draining.insert(draining.begin(), draining.end());
  BOOST_OUTCOME_TRY(expected, ReadFolder(client, "/control/expect"));
  for (const auto& [id, text] : expected) {
    snapshot.expected.insert(id);
    ExpectDocument document;
    Take("control/expect/" + id + " (taken for 60 s)", ReadExpect(text), document, snapshot);
  }
  BOOST_OUTCOME_TRY(limited, ReadFolder(client, "/control/limits"));
  for (const auto& [id, text] : limited) {
    LimitsDocument limits;
    if (Take("control/limits/" + id, ReadLimits(text), limits, snapshot) && limits.Any())
      snapshot.limits[id] = std::move(limits);
  }
  BOOST_OUTCOME_TRY(pauses, ReadNodes(client, "/control/pause"));
  for (const auto& [name, node] : pauses) {
    snapshot.pauses.push_back(name);
    snapshot.pause_stamps[name] = ReadPauseStamp(name, node);
  }
  BOOST_OUTCOME_TRY(breakers, ReadFolder(client, kBreakersNode));
  for (const auto& [type, text] : breakers) snapshot.breakers[type] = ReadBreaker(text);
  return {};
}

Status ReadFixedNodes(ClusterClient& client, ClusterSnapshot& snapshot) {
  TreeMirror mirror;
  TrackFixedNodes(mirror);
  while (const auto request = mirror.NextRead()) {
    TreeReply reply{.status = TreeStatus::Ok};
    if (request->kind == TreeRequest::Kind::List) {
      BOOST_OUTCOME_TRY(names, client.List(request->path));
      reply.children = std::move(names);
    } else {
      BOOST_OUTCOME_TRY(node, client.Get(request->path));
      if (!node) reply.status = TreeStatus::NotFound;
      if (node) reply.node = std::move(*node);
    }
    mirror.Replied(*request, reply);
  }
  snapshot.missing = MissingNodes(mirror);
  if (const TreeNode* root = mirror.Node("/")) snapshot.made_again = ReadMadeAgain(root->data);
  return {};
}

Status ReadLeader(ClusterClient& client, ClusterSnapshot& snapshot) {
  BOOST_OUTCOME_TRY(epoch, client.Get("/epoch"));
  if (epoch) Take("epoch", ReadEpoch(epoch->data), snapshot.epoch, snapshot);
  BOOST_OUTCOME_TRY(candidates, ReadFolder(client, "/election"));
  for (const auto& [slot, text] : candidates) {
    CandidateDocument candidate;
    if (Take("election/" + slot, ReadCandidate(text), candidate, snapshot))
      snapshot.candidates.push_back(candidate.id);
  }
  BOOST_OUTCOME_TRY(plan, client.Get("/plan"));
  if (!plan) return {};
  if (plan->set_at != WallTime{}) snapshot.planned_at = plan->set_at;
  if (Take("plan", ReadPlan(plan->data), snapshot.plan, snapshot))
    snapshot.plan_json = ParseNode<ordered_json>(plan->data);
  return {};
}

Status ReadWorkers(ClusterClient& client, ClusterSnapshot& snapshot) {
  BOOST_OUTCOME_TRY(workers, ReadFolder(client, "/workers"));
  for (const auto& [id, text] : workers) {
    WorkerDocument document;
    if (Take("workers/" + id, ReadWorker(text), document, snapshot))
      snapshot.workers[id] = std::move(document);
  }
  BOOST_OUTCOME_TRY(assigned, ReadFolder(client, "/assign"));
  for (const auto& [id, text] : assigned) {
    AssignDocument document;
    if (Take("assign/" + id, ReadAssignment(client, id, text), document, snapshot))
      snapshot.assigned[id] = std::move(document);
  }
  BOOST_OUTCOME_TRY(statuses, ReadNodes(client, "/status"));
  for (const auto& [id, node] : statuses) {
    if (node.set_at != WallTime{}) snapshot.signs[id] = node.set_at;
    auto json = ParseNode<ordered_json>(node.data);
    if (json.is_object()) {
      snapshot.statuses[id] = std::move(json);
    } else {
      snapshot.unreadable.push_back("status/" + id + ": this is not a JSON object");
    }
  }
  return {};
}

// The group that names the type, or else the one that has every other; where there is one group, that.
std::string GroupOf(const ClusterSnapshot& snapshot, const std::string& handler) {
  std::string others = kDefaultGroup;
  for (const auto& [id, document] : snapshot.assigned) {
    for (const auto& [group, types] : document.groups) {
      if (std::find(types.begin(), types.end(), handler) != types.end()) return group;
      if (std::find(types.begin(), types.end(), kEveryOther) != types.end()) others = group;
    }
  }
  return others;
}

struct Range {
  SliceName first;
  std::vector<std::uint32_t> numbers;
};

std::string ToText(Range range) {
  std::sort(range.numbers.begin(), range.numbers.end());
  range.numbers.erase(std::unique(range.numbers.begin(), range.numbers.end()), range.numbers.end());
  const std::string group = range.first.group == kDefaultGroup ? "" : "@" + range.first.group;
  return range.first.shard + "/" + range.first.table + "/" + FormatLoadBalance(range.numbers) + group;
}

}  // namespace

std::size_t ClusterSnapshot::SliceCount(const std::string& id) const {
  const auto found = assigned.find(id);
  return found == assigned.end() ? 0 : found->second.slices.size();
}

Status CheckWorkers(const ClusterSnapshot& snapshot, const std::vector<std::string>& ids) {
  std::vector<std::string> known;
  for (const auto& [id, document] : snapshot.workers) known.push_back(id);
  for (const std::string& id : ids) {
    if (snapshot.workers.contains(id) || snapshot.assigned.contains(id)) continue;
    return Fail(ErrorCode::NotFound,
                "there is no worker '" + id + "'" + DidYouMean(id, known) + "; see millrace cluster status");
  }
  return {};
}

const ordered_json& PartOf(const ordered_json& json, const std::string& key) {
  static const ordered_json none;
  const auto found = json.find(key);  // nothing, where it is no object
  return found == json.end() ? none : *found;
}

const ordered_json& ObjectPart(const ordered_json& json, const std::string& key) {
  static const ordered_json none = ordered_json::object();
  const ordered_json& object = PartOf(json, key);
  return object.is_object() ? object : none;
}

std::string TextPart(const ordered_json& json, const std::string& key) {
  const ordered_json& text = PartOf(json, key);
  return text.is_string() ? text.get<std::string>() : "";
}

double NumberPart(const ordered_json& json, const std::string& key) {
  const ordered_json& number = PartOf(json, key);
  return number.is_number() ? std::clamp(number.get<double>(), 0.0, 1e9) : 0.0;
}

std::vector<std::string> TextsPart(const ordered_json& json, const std::string& key) {
  std::vector<std::string> texts;
  const ordered_json& list = PartOf(json, key);
  if (!list.is_array()) return texts;
  for (const ordered_json& text : list) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::optional<double> NumberIfThere(const ordered_json& json, const std::string& key) {
  const ordered_json& number = PartOf(json, key);
  if (!number.is_number()) return std::nullopt;
  return std::clamp(number.get<double>(), 0.0, 1e15);
}

PauseRecord ReadPauseStamp(const std::string& name, const TreeNode& node) {
  PauseRecord record{.what = name, .actor = {}, .since = node.set_at};
  const auto stamp = ParseNode<ordered_json>(node.data);
  record.actor = TextPart(stamp, "by");
  record.reason = Shorten(TextPart(stamp, "reason"), kMaxReason);
  if (const auto at = ParseTime(TextPart(stamp, "at"))) record.since = *at;
  return record;
}

void DropEndedBreakers(ClusterSnapshot& snapshot) {
  std::erase_if(snapshot.breakers, [&](const auto& breaker) {
    return !snapshot.workers.empty() &&
           std::all_of(snapshot.workers.begin(), snapshot.workers.end(), [&](const auto& worker) {
             const auto status = snapshot.statuses.find(worker.first);
             if (status == snapshot.statuses.end()) return false;
             return !PartOf(status->second, status_key::kBreakers).contains(breaker.first);
           });
  });
}

Result<ClusterSnapshot> ReadSnapshot(ClusterClient& client) {
  ClusterSnapshot snapshot;
  BOOST_OUTCOME_TRYV(ReadFixedNodes(client, snapshot));
  BOOST_OUTCOME_TRYV(ReadLeader(client, snapshot));
  BOOST_OUTCOME_TRYV(ReadWorkers(client, snapshot));
  BOOST_OUTCOME_TRYV(ReadControls(client, snapshot));
  DropEndedBreakers(snapshot);
  return snapshot;
}

Result<TableCatalog> ReadCatalog(ClusterConnection& cluster) {
  BOOST_OUTCOME_TRY(shards, OpenShards(cluster));
  TableCatalog catalog;
  const auto away = PrepareEach(shards, PrepareToPlan);
  for (auto& [name, shard] : shards) {
    const auto found = away.find(name);
    if (found != away.end()) PrintNote("shard " + name + ": " + found->second.message);
    catalog.Add(name, found == away.end() ? &shard.tables : nullptr);
  }
  return catalog;
}

PlanState PlanStateOf(const ClusterSnapshot& snapshot, const std::set<std::string>& without,
                      const Config& config) {
  PlanState state{
      .workers = snapshot.workers, .assigned = snapshot.assigned, .configured = ConfiguredGroups(config)};
  const auto leaves = [&](const std::string& id) {
    return snapshot.draining.contains(id) || without.contains(id);
  };
  for (const auto& [id, document] : snapshot.assigned) state.roles[id] = MemberRole::Gone;
  for (const auto& [id, document] : snapshot.workers) {
    state.roles[id] = leaves(id) ? MemberRole::Draining : MemberRole::Active;
  }
  for (const std::string& id : snapshot.expected) {
    if (!snapshot.workers.contains(id) && !leaves(id)) state.roles[id] = MemberRole::Kept;
  }
  return state;
}

std::string SliceOf(const ClusterSnapshot& snapshot, const std::string& shard, const TableName& table,
                    std::uint32_t number, const std::string& handler) {
  return ToString(SliceName{shard, table, number, GroupOf(snapshot, handler)});
}

std::string OwnerOf(const ClusterSnapshot& snapshot, const std::string& slice) {
  for (const auto& [id, document] : snapshot.assigned) {
    if (std::find(document.slices.begin(), document.slices.end(), slice) != document.slices.end()) return id;
  }
  return "";
}

std::vector<std::string> SliceRanges(const std::vector<std::string>& slices) {
  std::vector<Range> ranges;
  std::vector<std::string> others;
  for (const std::string& text : slices) {
    const auto name = ParseSliceName(text);
    if (!name) {
      others.push_back(text);
      continue;
    }
    const auto same = [&](const Range& range) {
      return range.first.shard == name->shard && range.first.table == name->table &&
             range.first.group == name->group;
    };
    // Sorted names of one table follow one another: it is looked for from the end.
    auto found = std::find_if(ranges.rbegin(), ranges.rend(), same);
    if (found == ranges.rend()) {
      ranges.push_back({*name, {}});
      found = ranges.rbegin();
    }
    found->numbers.push_back(name->number);
  }
  std::vector<std::string> texts;
  for (Range& range : ranges) texts.push_back(ToText(std::move(range)));
  texts.insert(texts.end(), others.begin(), others.end());
  return texts;
}

}  // namespace millrace::engine
