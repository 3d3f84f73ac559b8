#include "coordinator/leader/plan_writer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace millrace {
namespace {

struct Page {
  std::string path = {};
  bool exists = false;
  bool touched = false;
  AssignDocument document = {};
  std::size_t size = 0;  // bytes of its text, about
};

std::size_t SizeOf(const std::string& slice) { return slice.size() + 3; }

std::size_t SizeOf(const HandlersByGroup& groups) {
  std::size_t size = 120;
  for (const auto& [name, handlers] : groups) {
    size += name.size() + 8;
    for (const std::string& handler : handlers) size += SizeOf(handler);
  }
  return size;
}

// The pages as they are becoming, within the bounds of one multi.
class Draft {
 public:
  Draft(const PlanWriter& bounds, const PlanDecision& decision, const StoredAssignments& stored)
      : bounds_(bounds), decision_(decision), frame_(SizeOf(decision.groups)) {
    for (const auto& [id, pages] : stored) {
      for (const StoredPage& page : pages) Load(id, page);
    }
  }

  void Carry(std::vector<SliceMove>& moved) {
    std::vector<const SliceMove*> ordered;
    for (const SliceMove& move : decision_.moves) ordered.push_back(&move);
    std::sort(ordered.begin(), ordered.end(), [](const SliceMove* a, const SliceMove* b) {
      return std::tie(a->voluntary, a->from, a->to, a->slice) <
             std::tie(b->voluntary, b->from, b->to, b->slice);
    });
    for (const SliceMove* move : ordered) {
      if (!Fits(*move)) {
        waiting_.insert(move->slice);
        continue;
      }
      Remove(move->from, move->slice);
      Add(move->to, move->slice);
      moved.push_back(*move);
    }
  }

  // What no move brings about: retired tables, slices named twice, groups that were named anew, rubbish.
  void Mend() {
    for (const auto& [id, slices] : decision_.wanted) {
      const std::unordered_set<std::string> wanted(slices.begin(), slices.end());
      for (std::size_t i = 0; i < pages_[id].size() && !Full(); ++i) MendPage(pages_[id][i], wanted);
      for (const std::string& slice : slices) {
        if (Full()) return;
        if (!waiting_.contains(slice) && !Has(id, slice)) Add(id, slice);
      }
    }
  }

  std::vector<TreeWrite> Writes() {
    std::vector<TreeWrite> writes;
    for (auto& [id, pages] : pages_) {
      std::uint64_t generation = 0;
      for (const Page& page : pages) generation = std::max(generation, page.document.generation);
      if (generation == 0) generation = bounds_.epoch << 20;  // more than any that was seen under this id
      for (Page& page : pages) {
        if (!page.touched) continue;
        page.document.epoch = bounds_.epoch;
        page.document.generation = generation + 1;
        page.document.groups = decision_.groups;
        std::sort(page.document.slices.begin(), page.document.slices.end());
        const auto kind = page.exists ? TreeWrite::Kind::Set : TreeWrite::Kind::Create;
        writes.push_back({kind, page.path, ToText(page.document)});
      }
    }
    return writes;
  }

 private:
  void Load(const std::string& id, const StoredPage& stored) {
    Page page{stored.path, true, false, stored.document ? *stored.document : AssignDocument{}, frame_};
    for (const std::string& slice : page.document.slices) page.size += SizeOf(slice);
    auto& pages = pages_[id];
    const std::size_t index = pages.size();
    for (const std::string& slice : page.document.slices) places_[slice].push_back({id, index});
    pages.push_back(std::move(page));
    if (!stored.document) Touch(pages.back());
  }

  // Whether the multi has room for the pages that the move touches. It always has for the first move.
  bool Fits(const SliceMove& move) {
    std::size_t bytes = bytes_ + SizeOf(move.slice);
    std::size_t touched = touched_;
    const auto count = [&](const Page& page) {
      if (page.touched) return;
      bytes += page.size;
      ++touched;
    };
    if (const auto found = places_.find(move.slice); found != places_.end()) {
      for (const auto& [owner, index] : found->second) {
        if (owner == move.from) count(pages_[owner][index]);
      }
    }
    const auto& pages = pages_[move.to];
    const std::size_t index = RoomFor(pages, move.slice);
    count(index < pages.size() ? pages[index] : Page{.size = frame_});
    return bytes <= bounds_.longest_multi && touched < bounds_.most_pages;
  }

  // For one more page.
  bool Full() const {
    return bytes_ + bounds_.longest_page > bounds_.longest_multi || touched_ + 3 > bounds_.most_pages;
  }

  void Touch(Page& page) {
    if (page.touched) return;
    page.touched = true;
    bytes_ += page.size;
    ++touched_;
  }

  bool Has(const std::string& id, const std::string& slice) const {
    const auto found = places_.find(slice);
    return found != places_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                 [&](const auto& place) { return place.first == id; });
  }

  void Remove(const std::string& id, const std::string& slice) {
    const auto found = places_.find(slice);
    if (found == places_.end()) return;
    for (const auto& [owner, index] : found->second) {
      if (owner != id) continue;
      Page& page = pages_[owner][index];
      Touch(page);
      std::erase(page.document.slices, slice);
      page.size -= SizeOf(slice);
      bytes_ -= SizeOf(slice);
    }
    std::erase_if(found->second, [&](const auto& place) { return place.first == id; });
  }

  std::size_t RoomFor(const std::vector<Page>& pages, const std::string& slice) const {
    std::size_t index = 0;
    while (index < pages.size() && pages[index].size + SizeOf(slice) > bounds_.longest_page) ++index;
    return index;
  }

  // By hand somebody may have made pages, or removed some: the numbers need not be those of their order.
  static std::string FreePath(const std::string& id, const std::vector<Page>& pages) {
    const std::string first = "/assign/" + id;
    std::string path = first;
    const auto taken = [&](const Page& page) { return page.path == path; };
    for (int number = 1; std::any_of(pages.begin(), pages.end(), taken); ++number)
      path = first + "/" + std::to_string(number);
    return path;
  }

  void Add(const std::string& id, const std::string& slice) {
    auto& pages = pages_[id];
    const std::size_t index = RoomFor(pages, slice);
    if (index == pages.size()) pages.push_back({FreePath(id, pages), false, false, {}, frame_});
    Page& page = pages[index];
    Touch(page);
    page.document.slices.push_back(slice);
    page.size += SizeOf(slice);
    bytes_ += SizeOf(slice);
    places_[slice].push_back({id, index});
  }

  void MendPage(Page& page, const std::unordered_set<std::string>& wanted) {
    const auto stays = [&](const std::string& slice) {
      return wanted.contains(slice) || waiting_.contains(slice);
    };
    const bool same_groups = page.document.groups == decision_.groups || page.document.slices.empty();
    auto& slices = page.document.slices;
    if (same_groups && std::all_of(slices.begin(), slices.end(), stays)) return;
    Touch(page);
    std::erase_if(slices, [&](const std::string& slice) { return !stays(slice); });
  }

  const PlanWriter& bounds_;
  const PlanDecision& decision_;
  const std::size_t frame_;
  std::map<std::string, std::vector<Page>> pages_;
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::size_t>>> places_;
  std::unordered_set<std::string> waiting_;  // moved by a later multi
  std::size_t bytes_ = 0;
  std::size_t touched_ = 0;
};

}  // namespace

std::optional<AssignDocument> Together(const std::vector<StoredPage>& pages) {
  AssignDocument all;
  for (const StoredPage& page : pages) {
    if (!page.document) return std::nullopt;
    all.epoch = std::max(all.epoch, page.document->epoch);
    all.generation = std::max(all.generation, page.document->generation);
    all.slices.insert(all.slices.end(), page.document->slices.begin(), page.document->slices.end());
    if (page.document->slices.empty()) continue;  // it does not hear of groups that are named anew
    all.groups.insert(page.document->groups.begin(), page.document->groups.end());
  }
  std::sort(all.slices.begin(), all.slices.end());
  return all;
}

std::vector<TreeWrite> PlanWriter::Next(const PlanDecision& decision, const StoredAssignments& stored,
                                        std::vector<SliceMove>& moved) const {
  Draft draft(*this, decision, stored);
  draft.Carry(moved);
  draft.Mend();
  return draft.Writes();
}

}  // namespace millrace
