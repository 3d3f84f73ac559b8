#include "framework/doorbell/listening.h"

namespace millrace::engine {

void LogLoad::Begin(BootTime now, std::uint64_t server_now) {
  begun_ = now;
  server_begun_ = server_now;
  window_ = now;
  in_window_ = 0;
  behind_since_.reset();
}

std::optional<std::string> LogLoad::Add(BootTime now, std::size_t bytes,
                                        std::optional<std::uint32_t> logged_at, bool caught_up) {
  in_window_ += bytes;
  const std::size_t bound = kMostBytes * static_cast<std::size_t>(kOver / std::chrono::seconds(1));
  if (in_window_ > bound) {
    return "the server's log grows by more than " + std::to_string(kMostBytes >> 20) + " MB a second";
  }
  if (now - window_ >= kOver) {
    window_ = now;
    in_window_ = 0;
  }
  if (caught_up) behind_since_.reset();
  if (!logged_at) return std::nullopt;
  // A long statement is logged as of its beginning: only if nothing newer comes for a while are we behind.
  const auto since = std::chrono::floor<std::chrono::seconds>(now - begun_).count();
  const std::uint64_t server_now = server_begun_ + static_cast<std::uint64_t>(since);
  const auto bound_age = static_cast<std::uint64_t>(kBehind / std::chrono::seconds(1));
  if (server_now <= *logged_at + bound_age) {
    behind_since_.reset();
  } else if (!behind_since_) {
    behind_since_ = now;
  } else if (now - *behind_since_ > kPatience) {
    return "what is read of the server's log is " + std::to_string(server_now - *logged_at) +
           " seconds old: there is more of it than can be followed";
  }
  return std::nullopt;
}

}  // namespace millrace::engine
