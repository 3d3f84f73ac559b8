#include "coordinator/leader/usefulness.h"

#include <algorithm>
#include <limits>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr int kLongestWait = 16;  // times the patience

// Fewer is better; not to know is worst of all.
std::size_t Missing(const std::optional<std::vector<std::string>>& unread) {
  return unread ? unread->size() : std::numeric_limits<std::size_t>::max();
}

}  // namespace

void Usefulness::SessionsLast(Micros timeout) {
  longest_step_ = timeout;
  patience_ = 3 * timeout;
  wait_ = std::max(wait_, patience_);
}

void Usefulness::Reads(const std::optional<std::vector<std::string>>& unread, BootTime now) {
  unread_ = unread;
  if (Missing(unread) == 0) {
    unread_since_.reset();
  } else if (!unread_since_) {
    unread_since_ = now;
  }
}

void Usefulness::Begin(BootTime now) {
  asked_ = now;
  tried_ = Micros(0);
}

void Usefulness::Useful() {
  tried_ = Micros(0);
  wait_ = patience_;
}

void Usefulness::GaveWay() { wait_ = std::min(wait_ * 2, patience_ * kLongestWait); }

std::string Usefulness::WhyNot(const std::vector<CandidateDocument>& others, BootTime now) {
  if (connected_) tried_ += std::min(now - asked_, longest_step_);
  asked_ = now;
  if (others.empty()) return {};
  if (tried_ >= wait_) return "it has come to no plan for " + FormatDuration(wait_);
  if (!unread_since_ || now - *unread_since_ < patience_) return {};
  const auto better = std::find_if(others.begin(), others.end(), [&](const CandidateDocument& other) {
    return Missing(other.unread) < Missing(unread_);
  });
  if (better == others.end()) return {};
  if (!unread_) return "it knows of no shard that it can read, and " + better->id + " does";
  std::string names;
  for (const std::string& shard : *unread_) names += (names.empty() ? "" : ", ") + shard;
  return "it can't read " + names + ", and " + better->id + " can read more";
}

}  // namespace millrace::engine
