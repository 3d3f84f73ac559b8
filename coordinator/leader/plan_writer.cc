#include "coordinator/leader/plan_writer.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "coordinator/planner/handler_groups.h"

namespace millrace::engine {
namespace {

// After so many moves in a row that do not fit the multi is taken for full.
constexpr std::size_t kMostRefused = 1000;

struct Page {
  std::string path = {};
  bool exists = false;
  std::shared_ptr<const AssignDocument> stored = nullptr;  // null: it is new, or can't be read
  bool touched = false;                                    // in this multi
  bool mended = false;                                     // no former name is left on it
  std::vector<std::size_t> repeated = {};  // of `stored`, by hand: what the worker has elsewhere, too
  AssignDocument document = {};            // once it is touched: what it is to hold
  std::size_t size = 0;                    // bytes of its text, about

  const std::vector<std::string>& Slices() const {
    return touched || stored == nullptr ? document.slices : stored->slices;
  }
  // It can't be read, or names something twice: it is written anew whatever it is to hold.
  bool Amiss() const { return !touched && exists && (stored == nullptr || !repeated.empty()); }
};

std::size_t SizeOf(std::string_view slice) { return slice.size() + 3; }

std::size_t SizeOf(const HandlersByGroup& groups) {
  std::size_t size = 120;
  for (const auto& [name, handlers] : groups) {
    size += name.size() + 8;
    for (const std::string& handler : handlers) size += SizeOf(handler);
  }
  return size;
}

// About what they are as text.
std::size_t SizeOf(const LimitShares& shares) {
  std::size_t size = 0;
  for (const auto& [type, share] : shares) {
    size += type.size() + 8;
    if (share.rate > 0) size += 30;
    if (share.concurrency > 0) size += 25;
    if (share.permits > 0) size += 21;
  }
  return size;
}

// What it is called in every group.
std::string_view WithoutGroup(std::string_view slice) { return slice.substr(0, slice.find('@')); }

}  // namespace

// The pages as they are becoming, one multi after another. Names are looked up by views of what was decided
// and stored; a page is copied when it is touched.
class PlanWriter::Draft {
 public:
  Draft(std::uint64_t epoch, const PageBounds& bounds, std::shared_ptr<const PlanDecision> decision,
        StoredAssignments stored)
      : epoch_(epoch),
        bounds_(bounds),
        decided_(std::move(decision)),
        decision_(*decided_),
        stored_(std::move(stored)),
        frame_(SizeOf(decision_.groups)),
        mended_(decision_.wanted.begin()) {
    for (const auto& [id, pages] : stored_) {
      for (const StoredPage& page : pages) Load(id, page);
    }
    for (const SliceMove& move : decision_.moves) left_.push_back(&move);
    std::sort(left_.begin(), left_.end(), [](const SliceMove* a, const SliceMove* b) {
      return std::tie(a->voluntary, a->from, a->to, a->slice) <
             std::tie(b->voluntary, b->from, b->to, b->slice);
    });
  }

  void Carry(std::vector<SliceMove>& moved) {
    std::vector<const SliceMove*> later;
    std::size_t refused = 0;
    for (const SliceMove* move : left_) {
      if (refused == kMostRefused || !Fits(*move)) {
        refused = std::min(refused + 1, kMostRefused);
        later.push_back(move);
        continue;
      }
      refused = 0;
      Remove(pages_[move->from], move->slice);
      Pages& pages = pages_[move->to];
      if (!Has(pages, move->slice)) Add(move->to, move->slice, RoomFor(pages, move->slice));
      moved.push_back(*move);
    }
    left_ = std::move(later);
  }

  // What no move brings about: retired tables, slices named twice, groups that were named anew, rubbish, a
  // page for who has none.
  void Mend() {
    if (Full()) return;
    for (const SliceMove* move : left_) {
      waiting_.insert(move->slice);
      waiting_anywhere_.insert(WithoutGroup(move->slice));
    }
    for (auto worker = left_.empty() ? mended_ : decision_.wanted.begin(); worker != decision_.wanted.end();
         ++worker) {
      const auto& [id, slices] = *worker;
      Pages& pages = pages_[id];
      if (pages.empty() && slices.empty()) Touch(NewPage(id));
      MendPages(id, slices);
      // There is room for a page, and for what it may spill into: what goes from it by one name comes back by
      // another in the same multi.
      if (Full()) return;
      if (left_.empty()) mended_ = std::next(worker);
    }
  }

  // What was touched, which is stored from now on.
  std::vector<TreeWrite> Writes() {
    std::vector<TreeWrite> writes;
    for (auto& [id, pages] : pages_) {
      std::uint64_t generation = 0;
      for (const Page& page : pages) {
        if (page.stored != nullptr) generation = std::max(generation, page.stored->generation);
      }
      if (generation == 0) generation = epoch_ << 20;  // more than any that was seen under this id
      for (Page& page : pages) {
        if (!page.touched) continue;
        page.document.epoch = epoch_;
        page.document.generation = generation + 1;
        page.document.groups = page.mended ? decision_.groups : AllGroups(page);
        std::sort(page.document.slices.begin(), page.document.slices.end());
        const auto kind = page.exists ? TreeWrite::Kind::Set : TreeWrite::Kind::Create;
        writes.push_back({kind, page.path, ToText(page.document)});
        auto stored = std::make_shared<const AssignDocument>(std::move(page.document));
        page = {.path = std::move(page.path), .exists = true, .stored = std::move(stored)};
        page.size = StoredSize(page);
      }
    }
    bytes_ = touched_ = 0;
    waiting_.clear();
    waiting_anywhere_.clear();
    return writes;
  }

 private:
  using Names = std::unordered_set<std::string_view>;
  using Pages = std::vector<Page>;                                              // of one worker
  using Missing = std::unordered_multimap<std::string_view, std::string_view>;  // names, by WithoutGroup
  struct Place {
    const Pages* pages = nullptr;
    std::size_t index = 0;
  };

  void Load(const std::string& id, const StoredPage& stored) {
    Pages& pages = pages_[id];
    const std::size_t index = pages.size();
    Page& page = pages.emplace_back(Page{stored.path, true, stored.document});
    page.size = StoredSize(page);
    const std::vector<std::string>& slices = page.Slices();
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (Has(pages, slices[i])) {
        page.repeated.push_back(i);
      } else {
        places_.emplace(slices[i], Place{&pages, index});
      }
    }
  }

  std::size_t StoredSize(const Page& page) const {
    std::size_t size = frame_;
    if (page.stored == nullptr) return size;
    size += SizeOf(page.stored->shares) + SizeOf(page.stored->shares_before);
    if (page.stored->groups != decision_.groups) size += SizeOf(page.stored->groups);
    for (const std::string& slice : page.stored->slices) size += SizeOf(slice);
    return size;
  }

  // Whether the multi has room for the pages that the move touches. It always has for the first move, or
  // nothing would ever be written.
  bool Fits(const SliceMove& move) {
    if (touched_ == 0) return true;
    std::size_t bytes = bytes_ + SizeOf(move.slice);
    std::size_t touched = touched_;
    const auto count = [&](const Page& page) {
      if (page.touched) return;
      bytes += page.size;
      ++touched;
    };
    const Pages& from = pages_[move.from];
    const auto [begin, end] = places_.equal_range(move.slice);
    for (auto place = begin; place != end; ++place) {
      if (place->second.pages == &from) count(from[place->second.index]);
    }
    const Pages& pages = pages_[move.to];
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
    if (page.stored != nullptr) page.document = *page.stored;
    auto& kept = page.document.slices;
    for (auto i = page.repeated.rbegin(); i != page.repeated.rend(); ++i) {
      page.size -= SizeOf(kept[*i]);
      kept.erase(kept.begin() + static_cast<long>(*i));
    }
    page.touched = true;
    bytes_ += page.size;
    ++touched_;
  }

  bool Has(const Pages& pages, std::string_view slice) const {
    const auto [begin, end] = places_.equal_range(slice);
    return std::any_of(begin, end, [&](const auto& place) { return place.second.pages == &pages; });
  }

  void Remove(Pages& pages, std::string_view slice) {
    const auto [begin, end] = places_.equal_range(slice);
    for (auto place = begin; place != end;) {
      if (place->second.pages != &pages) {
        ++place;
        continue;
      }
      Page& page = pages[place->second.index];
      Touch(page);
      std::erase(page.document.slices, slice);
      page.size -= SizeOf(slice);
      bytes_ -= SizeOf(slice);
      place = places_.erase(place);
    }
  }

  std::size_t RoomFor(const Pages& pages, std::string_view slice) const {
    std::size_t index = 0;
    while (index < pages.size() && pages[index].size + SizeOf(slice) > bounds_.longest_page) ++index;
    return index;
  }

  // The same, but for pages that would be too much for this multi; `coming` bytes are still to be added to
  // it.
  std::size_t RoomNow(const Pages& pages, std::string_view slice, std::size_t coming) const {
    const auto fits = [&](const Page& page) {
      return page.size + SizeOf(slice) <= bounds_.longest_page &&
             (page.touched || bytes_ + page.size + coming <= bounds_.longest_multi);
    };
    return static_cast<std::size_t>(std::find_if(pages.begin(), pages.end(), fits) - pages.begin());
  }

  // By hand somebody may have made pages, or removed some: the numbers need not be those of their order.
  static std::string FreePath(const std::string& id, const Pages& pages) {
    const std::string first = "/assign/" + id;
    std::string path = first;
    const auto taken = [&](const Page& page) { return page.path == path; };
    for (int number = 1; std::any_of(pages.begin(), pages.end(), taken); ++number)
      path = first + "/" + std::to_string(number);
    return path;
  }

  Page& NewPage(const std::string& id) {
    Pages& pages = pages_[id];
    pages.push_back({FreePath(id, pages)});
    pages.back().size = frame_;
    return pages.back();
  }

  void Add(const std::string& id, std::string_view slice, std::size_t index) {
    Pages& pages = pages_[id];
    Page& page = index < pages.size() ? pages[index] : NewPage(id);
    Touch(page);
    page.document.slices.emplace_back(slice);
    page.size += SizeOf(slice);
    bytes_ += SizeOf(slice);
    places_.emplace(slice, Place{&pages, index});
  }

  void MendPages(const std::string& id, const std::vector<std::string>& slices) {
    const Names wanted(slices.begin(), slices.end());
    Pages& pages = pages_[id];
    const auto is_missing = [&](const std::string& slice) {
      return !waiting_.contains(slice) && !Has(pages, slice);
    };
    Missing missing;
    for (const std::string& slice : slices) {
      if (is_missing(slice)) missing.emplace(WithoutGroup(slice), slice);
    }
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (i > 0 && Full()) return;
      const std::vector<std::string_view> come = MendPage(pages[i], wanted, missing);
      std::size_t coming = 0;
      for (const std::string_view slice : come) coming += SizeOf(slice);
      for (const std::string_view slice : come) {
        Add(id, slice, RoomNow(pages, slice, coming));
        coming -= SizeOf(slice);
      }
    }
    for (const std::string& slice : slices) {
      if (!is_missing(slice)) continue;
      const std::size_t coming = SizeOf(slice);
      if (bytes_ + coming > bounds_.longest_multi) return;
      Add(id, slice, RoomNow(pages, slice, coming));
    }
  }

  // Returns, out of `missing`, by what names the slices of the page come back, or are added to. Where there
  // is no room for them, or one of them is still to be moved, the former name stays: its owner has it
  // throughout.
  std::vector<std::string_view> MendPage(Page& page, const Names& wanted, Missing& missing) {
    const auto stays = [&](const std::string& slice) {
      return wanted.contains(slice) || waiting_.contains(slice);
    };
    const std::vector<std::string>& slices = page.Slices();
    const auto& groups = page.touched || page.stored == nullptr ? page.document.groups : page.stored->groups;
    const bool same_groups = groups == decision_.groups || slices.empty();
    if (!page.Amiss() && same_groups && std::all_of(slices.begin(), slices.end(), stays)) return {};
    Touch(page);
    page.mended = true;
    std::vector<std::string_view> come;
    std::size_t bytes = 0;  // of those
    const auto bring = [&](std::string_view name) {
      const auto [begin, end] = missing.equal_range(name);
      std::size_t size = 0;
      for (auto next = begin; next != end; ++next) size += SizeOf(next->second);
      const bool first = touched_ == 1 && bytes == 0;  // however long somebody made the page
      if (size > 0 && !first && bytes_ + bytes + size > bounds_.longest_multi) return false;
      bytes += size;
      for (auto next = begin; next != end; ++next) come.push_back(next->second);
      missing.erase(begin, end);
      return true;
    };
    std::erase_if(page.document.slices, [&](const std::string& slice) {
      const std::string_view name = WithoutGroup(slice);
      // Of a former name its place is left, by which nothing is looked for any more.
      const bool done = !waiting_anywhere_.contains(name) && bring(name);
      if (!done) page.mended = false;
      if (!done || stays(slice)) return false;
      page.size -= SizeOf(slice);
      bytes_ -= SizeOf(slice);
      return true;
    });
    return come;
  }

  // Of a page on which former names are left, those by which they are read as well.
  HandlersByGroup AllGroups(const Page& page) const {
    HandlersByGroup groups = decision_.groups;
    if (page.stored == nullptr || page.stored->slices.empty() || page.stored->groups == groups) return groups;
    if (groups.empty()) groups[kDefaultGroup] = {kEveryOther};
    AddGroups(*page.stored, groups);
    return groups;
  }

  const std::uint64_t epoch_;
  const PageBounds bounds_;
  const std::shared_ptr<const PlanDecision> decided_;
  const PlanDecision& decision_;
  const StoredAssignments stored_;  // as it was at first
  const std::size_t frame_;
  std::vector<const SliceMove*> left_;  // in the order in which they are carried out
  std::map<std::string, std::vector<std::string>>::const_iterator mended_;  // the first that may need it
  std::map<std::string, Pages> pages_;
  std::unordered_multimap<std::string_view, Place> places_;  // by slice
  Names waiting_;                                            // moved by a later multi
  Names waiting_anywhere_;                                   // the same, by WithoutGroup
  std::size_t bytes_ = 0;                                    // of this multi
  std::size_t touched_ = 0;                                  // pages of it
};

bool OwnsAny(const std::vector<StoredPage>& pages) {
  return std::any_of(pages.begin(), pages.end(),
                     [](const StoredPage& page) { return page.document && !page.document->slices.empty(); });
}

std::optional<AssignDocument> Together(const std::vector<StoredPage>& pages) {
  AssignDocument all;
  HandlersByGroup groups;
  bool named = false;
  for (const StoredPage& page : pages) {
    if (!page.document) return std::nullopt;
    all.epoch = std::max(all.epoch, page.document->epoch);
    all.generation = std::max(all.generation, page.document->generation);
    all.slices.insert(all.slices.end(), page.document->slices.begin(), page.document->slices.end());
    if (page.document->slices.empty()) continue;  // it does not hear of groups that are named anew
    named = named || !page.document->groups.empty();
    AddGroups(*page.document, groups);
  }
  if (named) all.groups = std::move(groups);
  std::sort(all.slices.begin(), all.slices.end());
  return all;
}

PlanWriter::PlanWriter(std::uint64_t epoch, const PageBounds& bounds,
                       std::shared_ptr<const PlanDecision> decision, StoredAssignments stored)
    : draft_(std::make_unique<Draft>(epoch, bounds, std::move(decision), std::move(stored))) {}

PlanWriter::~PlanWriter() = default;

std::vector<TreeWrite> PlanWriter::Next(std::vector<SliceMove>& moved) {
  draft_->Carry(moved);
  draft_->Mend();
  return draft_->Writes();
}

}  // namespace millrace::engine
