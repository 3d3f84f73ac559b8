#include "framework/policy/fair_shares.h"

#include <algorithm>
#include <numeric>

namespace millrace::engine {

std::vector<std::size_t> FairShares::Divide(std::span<const ShareWish> wishes, std::size_t room) {
  std::vector<std::size_t> shares(wishes.size());
  const std::size_t wanted =
      std::accumulate(wishes.begin(), wishes.end(), std::size_t{0},
                      [](std::size_t sum, const ShareWish& wish) { return sum + wish.wanted; });
  if (wanted <= room) {
    for (std::size_t i = 0; i < wishes.size(); ++i) shares[i] = wishes[i].wanted;
    deficits_.clear();
    return shares;
  }
  const std::size_t quantum = wishes.size() > kMostAtOnce ? std::max<std::size_t>(room / kMostAtOnce, 1) : 1;
  const auto first =
      std::find_if(wishes.begin(), wishes.end(), [&](const ShareWish& wish) { return wish.name == next_; });
  std::size_t turn = first == wishes.end() ? 0 : static_cast<std::size_t>(first - wishes.begin());
  for (;; turn = (turn + 1) % wishes.size()) {
    const ShareWish& wish = wishes[turn];
    std::size_t& deficit = deficits_[wish.name];
    if (deficit == 0) deficit = quantum * wish.weight;
    const std::size_t taken = std::min({deficit, wish.wanted - shares[turn], room});
    shares[turn] += taken;
    room -= taken;
    deficit -= taken;
    if (room == 0 && deficit > 0 && shares[turn] < wish.wanted) break;  // its turn goes on the next time
    deficits_.erase(wish.name);
    if (room == 0) {
      turn = (turn + 1) % wishes.size();
      break;
    }
  }
  next_ = wishes[turn].name;
  return shares;
}

}  // namespace millrace::engine
