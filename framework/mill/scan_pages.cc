// What is read of the groups that a type may be claimed from: pages of them, until there is enough.
#include <algorithm>
#include <numeric>

#include "framework/mill/scan.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kRowsAtOnce = 2000;   // that one statement may bring, if its memory is there
constexpr std::size_t kSmallestPage = 100;  // rows: a page may be full of rows that run already
constexpr std::size_t kShortPage = kSmallestPage / 2;
// So many groups at least have a part in what a lane takes at once: with rows that lie scattered in the
// table more groups have more of them on one page of it; with neighbours each group is a range of its own.
constexpr std::size_t kShares = 8;
constexpr std::size_t kSharesInRuns = 2;

// Most of its rows.
bool AreNeighbours(const std::vector<ScanRow>& page) {
  std::size_t beside = 0;
  for (std::size_t i = 1; i < page.size(); ++i) beside += page[i].id == page[i - 1].id + 1;
  return 2 * beside >= page.size();
}

}  // namespace

// Equally urgent groups get a share each before one of them gets more; and a lane that is full of idle work
// has room for the urgent alone.
Step<bool> Scanner::Gather(TypeWork& work, std::span<const std::size_t> order, Candidates& found) {
  const std::size_t wanted = found.wanted;
  const std::size_t shares = work.in_runs ? kSharesInRuns : kShares;
  const std::size_t share = std::max((wanted + shares - 1) / shares, kSmallestPage);
  for (auto equal = order.begin(); equal != order.end();) {
    found.wanted = wanted;
    if (!found.MayRead()) break;
    const std::uint32_t urgency = work.ranks[*equal].urgency;
    const ClaimLoad landed = shared_.claims.Landed(work.type);
    const LaneRoom room = parts_.runner.Room(work.type, parts_.attempts, urgency);
    found.wanted = std::min(wanted, shared_.claims.Free(work.type, room, landed).tasks);
    const auto end =
        std::find_if(equal, order.end(), [&](std::size_t i) { return work.ranks[i].urgency != urgency; });
    if (found.MayRead() && TakeBrought(work, {equal, end}, found)) break;
    for (const std::size_t part : {share, found.wanted}) {
      if (!found.MayRead()) break;
      const bool read = co_await GatherFrom(work, {equal, end}, part, found);
      if (!read) co_return false;
    }
    equal = end;
  }
  co_return true;
}

// These start at once: a page is read once they are claimed, from the head, since there may be others.
bool Scanner::TakeBrought(TypeWork& work, std::span<const std::size_t> groups, Candidates& found) {
  const std::size_t before = found.count;
  for (const std::size_t i : groups) {
    if (look_.brought.empty()) break;
    const DueGroup& group = *work.groups[i];
    auto brought = look_.brought.extract(GroupKeyOf(group));
    if (!brought || found.Full() || !MayHaveMore(group)) continue;
    std::vector<ScanRow>& rows = brought.mapped();
    SetServed(group, work.ranks[i]);
    Pick(group, {.group = group, .after = HeadOf(group), .limit = rows.size()}, false, rows,
         found.wanted - found.count, found);
    cursors_.Rewind(group);
  }
  return found.count > before;
}

// As many groups at once as have what is wanted; a group whose page had rows that run already stays until it
// has given its share or has no more.
Step<bool> Scanner::GatherFrom(TypeWork& work, std::span<const std::size_t> groups, std::size_t most,
                               Candidates& found) {
  std::vector<Share> shares;
  while (found.MayRead()) {
    std::erase_if(shares, [&](const Share& share) { return share.left == 0 || !MayHaveMore(*share.group); });
    const std::size_t joined = AddShares(work, groups, most, found, shares);
    if (shares.empty()) co_return true;
    const bool read = co_await ScanInto(work, shares, joined, found);
    if (!read) co_return false;
  }
  co_return true;
}

std::size_t Scanner::AddShares(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                               const Candidates& found, std::vector<Share>& shares) {
  // All pages of the last statement were short, and what one statement brings has a place in memory.
  if (work.longest <= kShortPage && found.room / mean_bytes_ >= kRowsAtOnce) {
    const std::vector<Share> before = shares;
    const auto others = groups;
    if (const std::size_t rows = Join(work, groups, most, found, shares); rows > 0) return rows;
    shares = before;
    groups = others;
  }
  TakeShares(work, groups, most, found, shares, [&](const Share& share) { return PageOf(share, found); });
  return 0;
}

// A group may have more than was expected, but not so much that many are read for nothing.
std::size_t Scanner::Join(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                          const Candidates& found, std::vector<Share>& shares) {
  TakeShares(work, groups, most, found, shares, [&](const Share&) { return work.longest; });
  std::size_t rows = 2 * shares.size() * work.longest + kSmallestPage;
  for (const Share& share : shares) {
    const DueGroup& first = *shares[0].group;
    if (share.group->table != first.table || share.group->urgency != first.urgency) return 0;
    rows = std::max(rows, PageOf(share, found));
  }
  return shares.size() > 1 ? std::min(rows, kRowsAtOnce) : 0;
}

// Small groups don't give what they are asked for. So it goes by what pages gave of late. Should they give
// all after all, these are no more rows than are wanted, or kRowsAtOnce, and than there is memory for.
void Scanner::TakeShares(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                         const Candidates& found, std::vector<Share>& shares,
                         const std::function<std::size_t(const Share&)>& rows_of) {
  const std::size_t wanted = found.wanted - found.count;
  const std::size_t in_memory = std::max<std::size_t>(found.room / mean_bytes_, 1);
  const std::size_t enough = std::min(wanted, in_memory);
  const std::size_t most_rows = std::min(std::max(wanted, kRowsAtOnce), in_memory);
  std::size_t rows = 0;  // at most
  double expected = 0;
  const auto count = [&](const Share& share) {
    rows += rows_of(share);
    expected +=
        std::min(work.yield.value_or(static_cast<double>(rows_of(share))), static_cast<double>(share.left));
  };
  for (const Share& share : shares) count(share);
  for (; !groups.empty() && shares.size() < Candidates::kMostPages && rows < most_rows &&
         expected < static_cast<double>(enough);
       groups = groups.subspan(1)) {
    const DueGroup& group = *work.groups[groups.front()];
    GroupRank& rank = work.ranks[groups.front()];
    if (MayHaveMore(group)) {
      const std::size_t part = std::min({most, wanted, shared_.bands.Left(group)});
      count(shares.emplace_back(Share{&group, &rank, part}));
    } else {
      SetServed(group, rank);
    }
  }
}

void Scanner::SetServed(const DueGroup& group, GroupRank& rank) {
  rank.served = turn_;
  cursors_.Served(group, turn_);
}

bool Scanner::MayHaveMore(const DueGroup& group) const {
  return MayClaim(group) && cursors_.MayHaveMore(group) && rounds_.Takes(group) &&
         shared_.bands.Left(group) > 0;
}

bool Scanner::IsOwn(const ScanRow& row) const {
  const auto life = row.claimed_by.empty() ? nullptr : parts_.lives.Own();
  return life && life->incarnation() == row.claimed_by;
}

// Running rows are the tender's business: it adopts our own and rescues those of the dead.
bool Scanner::IsFree(const DueGroup& group, const ScanRow& row) {
  return row.state == TaskState::Waiting && !suspects_.IsSuspect(group, row);
}

// A row's size costs the database a look at its texts: it is asked for no more rows than may fit.
std::size_t Scanner::PageOf(const Share& share, const Candidates& found) const {
  const std::size_t page = std::max(std::min(share.left, found.room / mean_bytes_), kSmallestPage);
  const std::size_t expected = cursors_.Expected(*share.group);
  return expected > 0 ? std::min(page, expected) : page;
}

void Scanner::Candidates::Add(const DueGroup& group, ScanRow& row) {
  const auto fits = [&](const FoundRows& rows) {
    const ClaimRequest& claim = rows.request;
    return claim.attempt == row.attempt && claim.contents.empty() == !row.contents &&
           claim.table == group.table;
  };
  auto claim = std::find_if(claims.rbegin(), claims.rend(), fits);
  if (claim == claims.rend()) {
    const bool first = claims.empty();  // and the only one, mostly
    claims.push_back({{group.table, {}, row.attempt, {}}, {}});
    claim = claims.rbegin();
    if (first) {
      const std::size_t most = std::min(wanted, read);
      claim->request.ids.reserve(most);
      if (row.contents) claim->request.contents.reserve(most);
      claim->groups.reserve(most);
    }
  }
  claim->request.ids.push_back(row.id);
  if (row.contents) claim->request.contents.push_back(std::move(*row.contents));
  claim->groups.push_back(&group);
  ++count;
}

Step<bool> Scanner::ScanInto(TypeWork& work, std::span<Share> shares, std::size_t joined, Candidates& found) {
  std::vector<std::size_t> asked(shares.size());  // their places in the order of the requests
  std::iota(asked.begin(), asked.end(), std::size_t{0});
  if (joined > 0)
    std::sort(asked.begin(), asked.end(), [&](std::size_t one, std::size_t other) {
      return shares[one].group->slice < shares[other].group->slice;
    });
  std::vector<ScanRequest> requests;
  for (const std::size_t i : asked) {
    const Share& share = shares[i];
    requests.push_back({.group = *share.group,
                        .after = cursors_.At(*share.group),
                        .limit = PageOf(share, found),
                        .with_bytes = true,
                        .with_contents = true,
                        .with_created = rounds_.ByCreation(share.group->handler),
                        .joined = joined});
  }
  const BootTime sent = parts_.clock.Now();
  auto pages = co_await port_.ScanEach(requests);
  const BootTime now = parts_.clock.Now();
  work_to_rest_of_ += now - sent;
  if (!pages) co_return Note(Fail(pages.error()));
  found.pages += pages->size();
  brake_.Answered(now, now - sent, brake_limit_);
  std::size_t rows = 0;
  std::size_t bytes = 0;
  work.longest = 0;
  for (const std::vector<ScanRow>& page : *pages) {
    rows += page.size();
    work.longest = std::max(work.longest, page.size());
    if (page.size() > 1) work.in_runs = AreNeighbours(page);
    for (const ScanRow& row : page) bytes += MemoryBudget::Of(row.bytes);
  }
  if (pages->size() < shares.size()) work.longest = kRowsAtOnce;  // some group has more than was expected
  if (rows > 0) mean_bytes_ = bytes / rows;
  found.read = rows;
  std::vector<std::size_t> page_of(shares.size(), pages->size());  // those are not there
  for (std::size_t page = 0; page < pages->size(); ++page) page_of[asked[page]] = page;
  std::size_t looked = 0;
  std::size_t had = 0;
  for (std::size_t i = 0; i < shares.size() && !found.Full(); ++i) {
    const std::size_t page = page_of[i];
    if (page == pages->size()) continue;
    Share& share = shares[i];
    const std::size_t limit =
        std::min({share.left, found.wanted - found.count, shared_.bands.Left(*share.group)});
    SetServed(*share.group, *share.rank);
    const bool whole = joined > 0 && page + 1 < pages->size();
    const Picked picked = Pick(*share.group, requests[page], whole, (*pages)[page], limit, found);
    share.left -= picked.taken;
    had += picked.had;
    ++looked;
  }
  if (looked > 0) work.yield = static_cast<double>(had) / static_cast<double>(looked);
  if (sent_ && port_.HasLanded()) co_await Land();
  co_return GoesOn();
}

Scanner::Picked Scanner::Pick(const DueGroup& group, const ScanRequest& request, bool whole,
                              std::vector<ScanRow>& rows, std::size_t limit, Candidates& found) {
  ScanPosition last = request.after;
  bool full = !whole && rows.size() >= request.limit;
  const std::size_t before = found.count;
  bool any = false;  // of its round
  std::size_t waiting = 0;
  bool through = true;
  const std::vector<bool> in_hand = parts_.attempts.in_flight().Contains(group.table, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ScanRow& row = rows[i];
    const std::size_t bytes = MemoryBudget::Of(row.bytes);
    const bool wanted = !in_hand[i] && !IsOwn(row) && rounds_.IsWithin(group, row);
    const bool free = wanted && IsFree(group, row);
    if (wanted && !free) LookForAgain(group, row.run_at);
    if (free) {
      any = true;
      if (found.count == before + limit || !found.Takes(bytes)) {
        full = true;
        through = false;
        break;
      }
      found.Add(group, row);
    }
    last = {row.run_at, row.id};
    if (row.state == TaskState::Waiting) ++waiting;
  }
  if (through && cursors_.Passed(group, rows.size(), waiting)) full = false;
  cursors_.Advance(group, last, rows.size(), full);
  rounds_.Read(group, last.run_at, any, full);
  shared_.bands.Read(group, found.count - before, full);
  const std::size_t taken = found.count - before;
  return {taken, full ? std::min(rows.size(), request.limit) : taken};
}

}  // namespace millrace::engine
