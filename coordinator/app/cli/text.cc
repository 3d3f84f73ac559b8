#include "coordinator/app/cli/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

constexpr bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (char c : text) width += Continues(c) ? 0 : 1;
  return width;
}

std::string Fit(std::string_view text, std::size_t width) {
  std::string safe = Escape(text, Backslash::Kept);
  if (DisplayWidth(safe) <= width) return safe;
  if (width == 0) return {};
  std::size_t end = 0;
  std::size_t columns = 0;
  while (end < safe.size() && columns + 1 < width) {
    ++end;
    while (end < safe.size() && Continues(safe[end])) ++end;
    ++columns;
  }
  return safe.substr(0, end) + "…";
}

std::string Wrapped(std::string_view text, std::size_t width, std::size_t begin, std::size_t indent) {
  std::string out;
  std::size_t column = begin;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t wide = DisplayWidth(word);
    if (column > begin && width > 0 && column + 1 + wide > width) {
      out += "\n" + std::string(indent, ' ');
      begin = column = indent;
    } else if (column > begin) {
      out += ' ';
      ++column;
    }
    out += word;
    column += wide;
    at = end + 1;
  }
  return out;
}

std::string WithCommas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string PercentText(double part) {
  return std::to_string(std::lround(std::clamp(part * 100, 1.0, 100.0))) + " %";
}

std::string Count(std::uint64_t number, const std::string& one, const std::string& many) {
  return WithCommas(number) + " " + (number == 1 ? one : many);
}

std::string NearestOf(const std::string& wrong, const std::vector<std::string>& known,
                      const std::string& otherwise, std::size_t most) {
  const std::string hint = DidYouMean(wrong, known);
  if (!hint.empty() || known.empty()) return hint;
  const bool more = known.size() > most;
  return otherwise + Joined(std::span(known).first(more ? most : known.size())) + (more ? " …" : "");
}

std::string ElapsedText(Micros elapsed) {
  const std::int64_t ms = elapsed.count() / 1000;
  char text[64];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%lld ms", static_cast<long long>(ms));
  } else if (ms < 10'000 && ms % 1000 != 0) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  } else if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%lld s", static_cast<long long>(ms / 1000));
  } else if (ms < 3'600'000) {
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms / 1000 % 60));
  } else if (ms < 48LL * 3'600'000) {
    std::snprintf(text, sizeof text, "%lld h %lld min", static_cast<long long>(ms / 3'600'000),
                  static_cast<long long>(ms / 60'000 % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld days", static_cast<long long>(ms / 86'400'000));
  }
  return text;
}

std::string Relative(WallTime time, WallTime now) {
  const Micros distance = time > now ? time - now : now - time;
  if (distance < std::chrono::seconds(1)) return "now";
  return time > now ? "in " + ElapsedText(distance) : ElapsedText(distance) + " ago";
}

}  // namespace millrace::engine
