#include "framework/base/suggest.h"

#include <algorithm>
#include <vector>

namespace millrace::engine {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string Nearest(std::string_view wrong, std::span<const std::string> known) {
  constexpr std::size_t kLongestWorthAGuess = 200;
  if (wrong.size() > kLongestWorthAGuess) return {};
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& name : known) {
    const std::size_t longer = std::max(wrong.size(), name.size());
    const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
    const std::size_t least = longer - std::min(wrong.size(), name.size());
    if (least > allowed || (!best.empty() && least >= best_distance)) continue;
    const std::size_t distance = EditDistance(wrong, name);
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view wrong, std::span<const std::string> known) {
  const std::string nearest = Nearest(wrong, known);
  return nearest.empty() ? std::string() : " (did you mean '" + nearest + "'?)";
}

}  // namespace millrace::engine
