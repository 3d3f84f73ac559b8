#include "coordinator/leader/plan_writer.h"

#include <algorithm>
#include <set>

namespace millrace {
namespace {

const AssignDocument* DocumentOf(const std::map<std::string, StoredAssignment>& stored,
                                 const std::string& id) {
  const auto found = stored.find(id);
  return found == stored.end() || !found->second.document ? nullptr : &*found->second.document;
}

std::size_t SizeOf(const std::vector<std::string>& slices) {
  std::size_t size = 200;
  for (const std::string& slice : slices) size += slice.size() + 3;
  return size;
}

}  // namespace

std::vector<TreeWrite> PlanWriter::Next(const PlanDecision& decision,
                                        const std::map<std::string, StoredAssignment>& stored,
                                        std::vector<SliceMove>& moved) const {
  // As many moves as fit: they decide which documents are written.
  std::set<std::string> touched;
  std::size_t size = 0;
  const auto touch = [&](const std::string& id) {
    if (id.empty() || !touched.insert(id).second) return;
    const auto wanted = decision.wanted.find(id);
    size += wanted == decision.wanted.end() ? 200 : SizeOf(wanted->second);
  };
  std::vector<SliceMove> ordered = decision.moves;
  std::sort(ordered.begin(), ordered.end(), [](const SliceMove& a, const SliceMove& b) {
    return std::tie(a.voluntary, a.from, a.to, a.slice) < std::tie(b.voluntary, b.from, b.to, b.slice);
  });
  for (const SliceMove& move : ordered) {
    const bool known = touched.contains(move.from) && touched.contains(move.to);
    if (!known && !touched.empty() && (touched.size() + 2 > most_workers || size > longest_multi / 2)) break;
    touch(move.from);
    touch(move.to);
  }
  std::set<std::string> undone;
  for (const SliceMove& move : ordered) {
    const bool done = (move.from.empty() || touched.contains(move.from)) && touched.contains(move.to);
    if (done) {
      moved.push_back(move);
    } else {
      undone.insert(move.slice);
    }
  }
  // Documents that no move touches may still have to change: retired tables, other groups, rubbish.
  for (const auto& [id, slices] : decision.wanted) {
    if (touched.size() >= most_workers || size > longest_multi / 2) break;
    const AssignDocument* document = DocumentOf(stored, id);
    const bool same = document != nullptr && document->slices == slices &&
                      (document->groups == decision.groups || slices.empty());
    if (!same && !(document == nullptr && slices.empty() && !stored.contains(id))) touch(id);
  }

  std::map<std::string, AssignDocument> documents;
  for (const std::string& id : touched) {
    AssignDocument& document = documents[id];
    const AssignDocument* before = DocumentOf(stored, id);
    document.epoch = epoch;
    document.generation = before == nullptr ? epoch << 20 : before->generation + 1;
    document.groups = decision.groups;
    const auto wanted = decision.wanted.find(id);
    if (wanted != decision.wanted.end()) document.slices = wanted->second;
  }
  // Moves that wait for a later multi are taken back out.
  for (const SliceMove& move : ordered) {
    if (!undone.contains(move.slice)) continue;
    if (const auto to = documents.find(move.to); to != documents.end()) {
      std::erase(to->second.slices, move.slice);
    }
    if (const auto from = documents.find(move.from); from != documents.end()) {
      from->second.slices.push_back(move.slice);
      std::sort(from->second.slices.begin(), from->second.slices.end());
    }
  }
  std::vector<TreeWrite> writes;
  for (auto& [id, document] : documents) {
    const auto found = stored.find(id);
    const AssignDocument* before = DocumentOf(stored, id);
    if (before != nullptr && before->slices == document.slices && before->groups == document.groups) continue;
    for (TreeWrite& write :
         Write(id, std::move(document), found == stored.end() ? nullptr : &found->second)) {
      writes.push_back(std::move(write));
    }
  }
  return writes;
}

std::vector<TreeWrite> PlanWriter::Write(const std::string& id, AssignDocument document,
                                         const StoredAssignment* stored) const {
  std::vector<TreeWrite> writes;
  const std::vector<std::string> texts = ToTexts(document, longest_node);
  const std::string first = "/assign/" + id;
  const auto path = [&](std::size_t part) { return part == 0 ? first : first + "/" + std::to_string(part); };
  const std::size_t existing = stored == nullptr ? 0 : stored->nodes.size();
  for (std::size_t part = 0; part < texts.size(); ++part) {
    const auto kind = part < existing ? TreeWrite::Kind::Set : TreeWrite::Kind::Create;
    writes.push_back({kind, path(part), texts[part]});
  }
  for (std::size_t part = std::max<std::size_t>(texts.size(), 1); part < existing; ++part) {
    writes.push_back({TreeWrite::Kind::Remove, path(part)});
  }
  return writes;
}

}  // namespace millrace
