#include "coordinator/leader/limit_keeper.h"

#include <algorithm>

namespace millrace::engine {
namespace {

const AssignDocument kNoPage;
constexpr std::size_t kMostPages = 20;         // at a time
constexpr std::size_t kMostText = 200 * 1024;  // of one multi

LimitShare Of(const LimitShares& shares, const std::string& type) {
  const auto share = shares.find(type);
  return share == shares.end() ? LimitShare{} : share->second;
}

LimitShare Most(const LimitShare& a, const LimitShare& b) {
  return {.rate = std::max(a.rate, b.rate),
          .concurrency = std::max(a.concurrency, b.concurrency),
          .permits = std::max(a.permits, b.permits)};
}

bool Takes(const Limit<std::string>& types, const std::string& type) {
  return !types || std::find(types->begin(), types->end(), type) != types->end();
}

std::uint64_t GenerationOf(const std::vector<StoredPage>& pages) {
  std::uint64_t generation = 0;
  for (const StoredPage& page : pages) {
    if (page.document) generation = std::max(generation, page.document->generation);
  }
  return generation;
}

}  // namespace

LimitShares LimitsToDivide(const LimitShares& known, const std::map<std::string, WorkerDocument>& present) {
  LimitShares told;
  const auto least = [](auto& of, auto other) {
    if (other > 0) of = of > 0 ? std::min(of, other) : other;
  };
  for (const auto& [id, document] : present) {
    for (const auto& [type, limit] : document.start_limits) {
      least(told[type].rate, limit.rate);
      least(told[type].concurrency, limit.concurrency);
    }
  }
  for (const auto& [type, limit] : known) {
    if (limit.rate > 0) told[type].rate = limit.rate;
    if (limit.concurrency > 0) told[type].concurrency = limit.concurrency;
  }
  return told;
}

// Of one worker.
struct LimitKeeper::Holder {
  const StoredPage* page = nullptr;
  std::uint64_t generation = 0;              // of all its pages
  const WorkerDocument* document = nullptr;  // null: it is away, or its shares are another life's
  const StatusDocument* status = nullptr;    // of that life
  bool owner = false;
  bool confirmed = false;  // what the page says is in force, and nothing else
  bool dead = false;       // the life that had the shares starts nothing any more, and nothing of it runs
  bool left = false;       // it starts nothing any more

  const AssignDocument& Page() const { return page->document ? *page->document : kNoPage; }
  // Shares of a life that is over are nobody's.
  LimitShare Written(const std::string& type) const { return dead ? LimitShare{} : Of(Page().shares, type); }
  LimitShare InForce(const std::string& type) const {
    if (dead) return {};
    LimitShare share = Of(Page().shares, type);
    if (!confirmed) {
      share = Most(share, Of(Page().shares_before, type));
      if (left) share.rate = 0;
      return share;
    }
    const auto use = status->limits.find(type);
    if (use == status->limits.end()) return share;
    // What holds a permit is counted among those.
    const std::uint32_t runs = share.permits > 0 ? use->second.placed : use->second.running;
    share.concurrency = std::max(share.concurrency, runs);
    return share;
  }
  ShareHolder For(const std::string& type) const {
    ShareHolder holder{.written = Written(type), .in_force = InForce(type)};
    holder.takes = document != nullptr && owner && Takes(document->limits.handlers, type);
    if (status == nullptr) return holder;
    const auto use = status->limits.find(type);
    if (use != status->limits.end()) holder.use = use->second;
    return holder;
  }
};

bool LimitKeeper::IsDead(const LimitsView& view, const std::string& id,
                         const StatusDocument* successor) const {
  const auto own = [&](const std::string& incarnation) {
    if (successor == nullptr) return false;
    const auto& lives = successor->lives;
    return std::find(lives.begin(), lives.end(), incarnation) != lives.end();
  };
  const BootTime since = away_.at(id);
  return !view.lives.empty() && std::all_of(view.lives.begin(), view.lives.end(), [&](const auto& shard) {
    const SeenLives& seen = shard.second;
    return seen.asked > since && std::none_of(seen.alive.begin(), seen.alive.end(), [&](const auto& life) {
             return life.first == id && !own(life.second);
           });
  });
}

std::map<std::string, LimitKeeper::Holder> LimitKeeper::Holders(const LimitsView& view, BootTime now) {
  std::map<std::string, Holder> holders;
  std::set<std::string> away;
  for (const auto& [id, pages] : view.stored) {
    // Without the first page it has no share, and gets none before the plan has written that.
    if (pages.empty() || pages.front().path != "/assign/" + id || !pages.front().document) continue;
    Holder& holder = holders[id];
    holder.page = &pages.front();
    holder.generation = GenerationOf(pages);
    holder.owner = OwnsAny(pages);
    const AssignDocument& page = holder.Page();
    const auto present = view.present.find(id);
    const auto status = view.statuses.find(id);
    const StatusDocument* told = nullptr;
    if (present != view.present.end() && status != view.statuses.end() &&
        status->second.incarnation == present->second.incarnation)
      told = &status->second;
    const bool nobodys = page.shares_of.empty() || (page.shares.empty() && page.shares_before.empty());
    const bool there = present != view.present.end();
    if (there && (nobodys || page.shares_of == present->second.incarnation)) {
      holder.document = &present->second;
      holder.status = told;
      holder.dead = page.shares_of != present->second.incarnation;
      holder.confirmed = !holder.dead && told != nullptr && told->shares_generation >= page.generation;
      continue;
    }
    if (nobodys) continue;
    away.insert(id);
    away_.try_emplace(id, now);
    holder.left = view.left.contains(page.shares_of);
    holder.dead = IsDead(view, id, told);
    if (holder.dead && there) {
      holder.document = &present->second;
      holder.status = told;
    }
  }
  std::erase_if(away_, [&](const auto& entry) { return !away.contains(entry.first); });
  return holders;
}

std::vector<TreeWrite> LimitKeeper::Next(const LimitsView& view, std::uint64_t epoch, BootTime now) {
  const std::map<std::string, Holder> holders = Holders(view, now);
  std::erase_if(turns_, [&](const auto& entry) { return !view.limits.contains(entry.first); });
  std::map<std::string, LimitShares> next;  // by worker
  for (const auto& [type, limit] : view.limits) {
    std::map<std::string, ShareHolder> of_type;
    for (const auto& [id, holder] : holders) of_type[id] = holder.For(type);
    const LimitShares divided = DivideLimit(limit, of_type, turns_[type], now);
    for (const auto& [id, holder] : holders) {
      const auto share = divided.find(id);
      LimitShare wanted = share == divided.end() ? holder.Written(type) : share->second;
      // Whoever is there and takes none any more starts none, either.
      if (share == divided.end() && holder.document != nullptr) wanted = {};
      if (holder.left && !holder.confirmed) wanted.rate = 0;
      if (wanted != LimitShare{}) next[id][type] = wanted;
    }
  }
  std::vector<TreeWrite> writes;
  std::size_t bytes = 0;
  for (const auto& [id, holder] : holders) {
    const AssignDocument& page = holder.Page();
    AssignDocument document = page;
    document.shares = next[id];
    document.shares_of = holder.document != nullptr && !document.shares.empty() ? holder.document->incarnation
                         : holder.dead                                          ? std::string()
                                                                                : page.shares_of;
    const bool anew = holder.dead && !page.shares_of.empty() && page.shares_of != document.shares_of;
    const bool leaves = holder.left && std::any_of(page.shares_before.begin(), page.shares_before.end(),
                                                   [](const auto& share) { return share.second.rate > 0; });
    if (document.shares == page.shares && !anew && !leaves) continue;
    document.shares_before.clear();
    std::set<std::string> types;
    for (const LimitShares* shares : {&page.shares, &page.shares_before}) {
      for (const auto& [type, share] : *shares) types.insert(type);
    }
    for (const std::string& type : types) {
      const LimitShare before = holder.InForce(type);
      if (before != LimitShare{}) document.shares_before[type] = before;
    }
    if (document.shares.empty() && document.shares_before.empty()) document.shares_of.clear();
    document.epoch = epoch;
    document.generation = holder.generation + 1;
    std::string text = ToText(document);
    bytes += text.size();
    if (!writes.empty() && (bytes > kMostText || writes.size() == kMostPages)) break;
    writes.push_back({TreeWrite::Kind::Set, holder.page->path, std::move(text)});
  }
  return writes;
}

}  // namespace millrace::engine
