#include "framework/config/policy_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "framework/config/parts.h"
#include "framework/config/policy_text.h"
#include "framework/task/task.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr Micros kDay = std::chrono::hours(24);
constexpr double kMostRate = 1e6;                // starts a second
constexpr double kLeastRate = 0.01 / 3600;       // one in a hundred hours
constexpr std::uint32_t kMostAtOnce = 100'000;   // of a limit
constexpr std::uint32_t kMostBytes = 1U << 30U;  // of a queue
constexpr std::uint32_t kDayMinutes = 24 * 60;
constexpr std::uint32_t kCells = 10;     // priorities, and failures as the due order tells them apart
constexpr std::size_t kMostBands = 100;  // more can't be apart from each other
constexpr std::size_t kMostClasses = 100;
constexpr std::size_t kLongestClass = 64;

template <class Number>
std::optional<Number> ReadNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> ReadRate(std::string_view text) {
  for (const auto& [unit, seconds] : kRateUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = ReadNumber<double>(text.substr(0, text.size() - 2));
    if (number && std::isfinite(*number)) return *number / seconds;
  }
  return std::nullopt;
}

// In the first unit in which it is a whole number; else a second's. It reads back as what it was.
std::string ExactRate(double rate) {
  for (const auto& [unit, seconds] : kRateUnits) {
    const double whole = std::round(rate * seconds);
    if (whole >= 1 && whole / seconds == rate)
      return std::to_string(static_cast<std::uint64_t>(whole)) + unit;
  }
  return json(rate).dump() + "/s";
}

}  // namespace

bool BandConfig::Covers(std::uint32_t urgency) const {
  const std::uint32_t priority = PriorityOf(urgency);
  const std::uint32_t failures = FailuresOf(urgency);
  return priority_from <= priority && priority <= priority_to && failures_from <= failures &&
         failures <= failures_to;
}

namespace {

// `01:30` as minutes after midnight.
std::optional<std::uint32_t> ReadTimeOfDay(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = ReadNumber<std::uint32_t>(text.substr(0, 2));
  const auto minute = ReadNumber<std::uint32_t>(text.substr(3));
  if (!hour || !minute || *hour > 24 || *minute > 59 || (*hour == 24 && *minute > 0)) return std::nullopt;
  return *hour * 60 + *minute;
}

// `5-9`, or `3` alone.
using Range = std::pair<std::uint32_t, std::uint32_t>;
std::optional<Range> ReadRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto from = ReadNumber<std::uint32_t>(text.substr(0, dash));
  const auto to = dash == std::string_view::npos ? from : ReadNumber<std::uint32_t>(text.substr(dash + 1));
  if (!from || !to || *from > *to || *to >= kCells) return std::nullopt;
  return Range{*from, *to};
}

// A `*` stands at the end of an error class, or nowhere.
bool IsClassPattern(const std::string& text) {
  return !text.empty() && text.size() <= kLongestClass && text.find('*') >= text.size() - 1;
}
constexpr const char* kNoPattern =
    "this is no error class: write its name, at most 64 bytes, with a '*' at its end at most";

constexpr const char* kTooManyClasses = "these are more than 100 classes: shorten them";

// The text of a key, or nullptr.
const std::string* TextOf(Section& keys, const char* key, const char* example) {
  const json* child = keys.Child(key);
  if (child == nullptr) return nullptr;
  if (child->is_string()) return &child->get_ref<const std::string&>();
  keys.Add(key, std::string("this must be a text in quotes, such as ") + example);
  return nullptr;
}

// Each of these reads or lists one key, or one part's keys, as Section and KeyLister do.

void RateKey(Section& keys, const char* key, double& rate) {
  const std::string* text = TextOf(keys, key, "\"100/s\"");
  if (text == nullptr) return;
  const auto read = ReadRate(*text);
  if (!read)
    return keys.Add(key, "this is no rate: write a number and its unit, \"100/s\", \"30/m\" or \"1000/h\"");
  if (*read < kLeastRate || *read > kMostRate)
    return keys.Add(
        key, "this is out of range: write a rate from 0.01/h to 1000000/s, or leave it out for no limit");
  rate = *read;
}
void RateKey(KeyLister& keys, const char* key, double rate) {
  keys.Value(key, rate > 0 ? ordered_json(ExactRate(rate)) : ordered_json());
}

template <class Keys, class Limit>
void LimitKeys(Keys& keys, Limit& limit) {
  RateKey(keys, "rate", limit.rate);
  keys.Integer("burst", limit.burst, 1, 1'000'000);
  keys.Integer("concurrency", limit.concurrency, 1, kMostAtOnce);
}

template <class Keys, class Breaker>
void BreakerKeys(Keys& keys, Breaker& breaker) {
  keys.Fraction("failures", breaker.failures, 0.01, 1.0);
  keys.Duration("window", breaker.window, 1s, 1h);
  keys.Integer("minimum", breaker.minimum, 1, 1'000'000);
  keys.Duration("probe_every", breaker.probe_every, 100ms, 1h);
  keys.Integer("probes", breaker.probes, 1, 1000);
  keys.Texts("classes", breaker.classes, kLongestClass);
}

void TimeOfDayKey(Section& keys, const char* key, std::uint32_t& minutes, std::uint32_t latest) {
  const std::string* text = TextOf(keys, key, "\"01:00\"");
  if (text == nullptr) return;
  const auto read = ReadTimeOfDay(*text);
  if (read && *read <= latest) {
    minutes = *read;
  } else {
    keys.Add(key, latest == kDayMinutes
                      ? "this is no time of day: write hours and minutes, from \"00:00\" to \"24:00\""
                      : "this is no time of day: write hours and minutes, from \"00:00\" to \"23:59\"");
  }
}
void TimeOfDayKey(KeyLister& keys, const char* key, std::uint32_t minutes, std::uint32_t /*latest*/) {
  char text[16];
  std::snprintf(text, sizeof text, "%02u:%02u", minutes / 60, minutes % 60);
  keys.Value(key, text);
}

template <class Keys, class Hours>
void HoursKeys(Keys& keys, Hours& hours) {
  TimeOfDayKey(keys, "from", hours.from, kDayMinutes - 1);
  TimeOfDayKey(keys, "to", hours.to, kDayMinutes);
  keys.Text("zone", hours.zone, 64);
}

template <class Keys, class Handler>
void ThreadKeys(Keys& keys, Handler& handler) {
  keys.Integer("min", handler.min_threads, 1, 256);
  keys.Duration("keep_alive", handler.keep_alive, 1s, kDay);
}

void RangeKey(Section& keys, const char* key, std::uint32_t& from, std::uint32_t& to) {
  const std::string* text = TextOf(keys, key, "\"5-9\"");
  if (text == nullptr) return;
  if (const auto range = ReadRange(*text)) {
    std::tie(from, to) = *range;
  } else {
    keys.Add(
        key,
        "this is no range: write \"5-9\", or \"3\" alone, from 0 to 9, where 9 failures are nine or more");
  }
}
void RangeKey(KeyLister& keys, const char* key, std::uint32_t from, std::uint32_t to) {
  keys.Value(key, RangeText(from, to));
}

template <class Keys, class Band>
void BandKeys(Keys& keys, Band& band) {
  RangeKey(keys, "priority", band.priority_from, band.priority_to);
  RangeKey(keys, "failures", band.failures_from, band.failures_to);
  keys.Duration("every", band.every, 0s, kDay);
  keys.Integer("most", band.most, 1, kMostScanRows);
}

// What a document must say of a part beyond its keys.

void CheckLimit(const json& limit, Section& keys) {
  if (!limit.is_object()) return;
  if (!limit.contains("rate") && !limit.contains("concurrency")) {
    keys.problems().Add(
        keys.Path("limit"),
        "it limits nothing: write \"rate\": \"100/s\" or \"concurrency\": 1, or leave it out");
  } else if (limit.contains("burst") && !limit.contains("rate")) {
    KeyPath path = keys.Path("limit");
    path.emplace_back("burst");
    keys.problems().Add(path, "this goes with a rate: write \"rate\": \"100/s\" beside it, or leave it out");
  }
}

void CheckBreaker(const BreakerConfig& breaker, Section& part) {
  if (breaker.classes.size() > kMostClasses) return part.Add("classes", kTooManyClasses);
  for (const std::string& pattern : breaker.classes) {
    if (!IsClassPattern(pattern)) part.Add("classes", kNoPattern);
    if (pattern == "bad_params")
      part.Add("classes", "bad params are the task's own fault: a breaker never counts them, leave them out");
  }
}

void CheckHours(const json& value, const HoursConfig& hours, Section& part, UnknownZones zones) {
  if (!value.is_object()) return;
  for (const char* key : {"from", "to"}) {
    if (!value.contains(key))
      part.Add(key, "this is missing: write \"from\": \"01:00\" and \"to\": \"06:00\"");
  }
  if (value.contains("from") && value.contains("to") && value["from"] == value["to"]) {
    part.Add("to",
             "it is the same as \"from\", so these hours never open: write when they end; for the whole day "
             "leave \"hours\" out");
  }
  const auto zone = TimeZone::Find(hours.zone);
  if (!zone && zones == UnknownZones::Refused) part.Add("zone", zone.error().message);
}

// Each band on the cells of priority and failures that it covers, which may be its alone.
void CheckBands(const std::vector<BandConfig>& bands, Section& keys) {
  std::array<std::array<const BandConfig*, kCells>, kCells> cells{};
  const auto name = [&](const BandConfig* band) { return std::to_string(band - bands.data()); };
  for (const BandConfig& band : bands) {
    const BandConfig* other = nullptr;
    for (std::uint32_t priority = band.priority_from; priority <= band.priority_to; ++priority) {
      for (std::uint32_t failures = band.failures_from; failures <= band.failures_to; ++failures) {
        const BandConfig*& cell = cells[priority][failures];
        if (cell != nullptr) other = cell;
        cell = &band;
      }
    }
    if (other == nullptr) continue;
    KeyPath path = keys.Path("bands");
    path.push_back(name(&band));
    keys.problems().Add(path, "it overlaps with bands." + name(other) + " (priority " +
                                  RangeText(other->priority_from, other->priority_to) + ", failures " +
                                  RangeText(other->failures_from, other->failures_to) +
                                  "): give each a part of its own");
  }
}

void BandsKey(Section& keys, std::vector<BandConfig>& bands) {
  const json* list = keys.Child("bands");
  if (list == nullptr) return;
  if (!list->is_array() || list->empty() || list->size() > kMostBands)
    return keys.Add("bands",
                    "this must be a list of 1 to 100 bands, such as [{\"priority\": \"5-9\", "
                    "\"failures\": \"1-5\", \"every\": \"30s\", \"most\": 1000}]");
  std::vector<BandConfig> read;
  const std::size_t problems = keys.problems().size();
  for (std::size_t i = 0; i < list->size(); ++i) {
    KeyPath path = keys.Path("bands");
    path.push_back(std::to_string(i));
    const json& band = (*list)[i];
    Section part(band, path, keys.problems());
    BandKeys(part, read.emplace_back());
    part.Done();
    if (band.is_object() && !band.contains("every") && !band.contains("most"))
      keys.problems().Add(path, "it says nothing of its tasks: write \"every\": \"30s\" or \"most\": 1000");
  }
  // A band that was not understood has ranges that nobody wrote.
  if (keys.problems().size() == problems) CheckBands(read, keys);
  bands = std::move(read);
}
void BandsKey(KeyLister& keys, const std::vector<BandConfig>& bands) {
  ordered_json list = ordered_json::array();
  for (const BandConfig& band : bands) {
    KeyLister part;
    BandKeys(part, band);
    list.push_back(part.values());
  }
  keys.Value("bands", list.empty() ? ordered_json() : std::move(list));
}

// `true` stands for the defaults.
void BreakerKey(Section& keys, std::optional<BreakerConfig>& breaker) {
  const json* child = keys.Child("breaker");
  if (child != nullptr && child->is_boolean()) {
    if (child->get<bool>()) {
      breaker.emplace();
    } else {
      keys.Add("breaker", "write true, or an object of its keys; for none leave the key out");
    }
    return;
  }
  keys.OptionalPart("breaker", breaker, [](Section& part, BreakerConfig& read) {
    BreakerKeys(part, read);
    CheckBreaker(read, part);
  });
}

template <class Keys, class Handler>
void PlainKeys(Keys& keys, Handler& handler) {
  keys.Part("threads", [&](auto& part) { ThreadKeys(part, handler); });
  keys.Integer("queue_bytes", handler.queue_bytes, 1024, kMostBytes);
  keys.Choice("when_full", handler.when_full,
              {{"wait", WhenFull::Wait}, {"caller", WhenFull::Caller}, {"give_back", WhenFull::GiveBack}});
  keys.Integer("weight", handler.weight, 1, kMostWeight);
}

template <class Keys, class Engine>
void EnginePolicyKeys(Keys& keys, Engine& engine) {
  using Scanners = ScannersConfig::By;
  using Queues = QueuesConfig::By;
  keys.Duration("aging", engine.aging, 1s, 7 * kDay);
  keys.Part("scanners", [&](auto& part) {
    part.Choice("by", engine.scanners.by,
                {{"shard", Scanners::Shard}, {"table", Scanners::Table}, {"priority", Scanners::Priority}});
    part.Integer("most", engine.scanners.most, 1, 64);
  });
  keys.Part("queues", [&](auto& part) {
    part.Choice("by", engine.queues.by,
                {{"handler", Queues::Handler},
                 {"table", Queues::Table},
                 {"shard", Queues::Shard},
                 {"priority", Queues::Priority},
                 {"one", Queues::One}});
    part.Choice("take", engine.queues.take,
                {{"turns", QueuesConfig::Take::Turns}, {"random", QueuesConfig::Take::Random}});
    part.Integer("most", engine.queues.most, 1, 1000);
  });
}

template <class Keys, class Engine>
void BrakeKeys(Keys& keys, Engine& engine) {
  keys.Part("brake", [&](auto& part) { part.Duration("latency", engine.brake_latency, 1ms, 10s); });
}

}  // namespace

void PolicyKeys(Section& keys, HandlerConfig& handler, UnknownZones zones) {
  keys.OptionalPart("limit", handler.limit,
                    [](Section& part, LimitConfig& limit) { LimitKeys(part, limit); });
  if (const json* limit = keys.Child("limit")) CheckLimit(*limit, keys);
  BreakerKey(keys, handler.breaker);
  const json* hours = keys.Child("hours");
  keys.OptionalPart("hours", handler.hours, [&](Section& part, HoursConfig& read) {
    HoursKeys(part, read);
    CheckHours(*hours, read, part, zones);
  });
  PlainKeys(keys, handler);
  // Where the text names none, the cluster's part or the handler's code may bring another than the default.
  const json* named = keys.Child("concurrency");
  if (named != nullptr && *named == handler.concurrency && handler.min_threads > handler.concurrency) {
    KeyPath path = keys.Path("threads");
    path.emplace_back("min");
    keys.problems().Add(path, "there are " + std::to_string(handler.concurrency) +
                                  " threads at most: raise \"concurrency\", or write no more than that");
  }
  BandsKey(keys, handler.bands);
}

void PolicyKeys(KeyLister& keys, const HandlerConfig& handler) {
  keys.OptionalPart("limit", handler.limit,
                    [](KeyLister& part, const LimitConfig& limit) { LimitKeys(part, limit); });
  keys.OptionalPart("breaker", handler.breaker,
                    [](KeyLister& part, const BreakerConfig& breaker) { BreakerKeys(part, breaker); });
  keys.OptionalPart("hours", handler.hours,
                    [](KeyLister& part, const HoursConfig& hours) { HoursKeys(part, hours); });
  // Beside the concurrency that is listed it would be refused where it is more.
  HandlerConfig listed = handler;
  listed.min_threads = std::min(handler.min_threads, handler.concurrency);
  PlainKeys(keys, std::as_const(listed));
  BandsKey(keys, handler.bands);
}

void PolicyKeys(Section& keys, EngineConfig& engine) {
  EnginePolicyKeys(keys, engine);
  const json* brake = keys.Child("brake");
  BrakeKeys(keys, engine);
  if (brake != nullptr && brake->is_object() && !brake->contains("latency"))
    keys.Add("brake", "it brakes at nothing: write \"latency\": \"50ms\", or leave it out");
}

void PolicyKeys(KeyLister& keys, const EngineConfig& engine) {
  EnginePolicyKeys(keys, engine);
  if (engine.brake_latency > Micros(0)) {
    BrakeKeys(keys, engine);
  } else {
    keys.Value("brake", nullptr);
  }
}

void RetryClassKeys(Section& retry, std::vector<RetryClass>& classes, Micros longest) {
  const json* child = retry.Child("classes");
  if (child == nullptr) return;
  Section names(*child, retry.Path("classes"), retry.problems());
  const json& every = names.Every();
  if (every.size() > kMostClasses) return retry.Add("classes", kTooManyClasses);
  std::vector<RetryClass> read;
  for (const auto& [pattern, ladder] : every.items()) {
    RetryClass& one = read.emplace_back(RetryClass{pattern, false, {}});
    if (!IsClassPattern(pattern)) names.Add(pattern, kNoPattern);
    one.fail = ladder == "fail";
    if (one.fail) continue;
    if (!ladder.is_object() || !ladder.contains("delays")) {
      names.Add(pattern,
                "write \"fail\", for the failed pool at once, or its ladder, {\"delays\": [\"5s\"]}");
      continue;
    }
    Section part(ladder, names.Path(pattern), retry.problems());
    part.Durations("delays", one.delays, 0s, longest);
    part.Done();
  }
  // So the first that fits is an exact one, or else the longest.
  std::stable_sort(read.begin(), read.end(), [](const RetryClass& a, const RetryClass& b) {
    const auto rank = [](const RetryClass& one) {
      return std::pair(one.pattern.ends_with('*'),
                       kLongestClass - std::min(one.pattern.size(), kLongestClass));
    };
    return rank(a) < rank(b);
  });
  classes = std::move(read);
}

void RetryClassKeys(KeyLister& retry, const std::vector<RetryClass>& classes, Micros longest) {
  ordered_json all = ordered_json::object();
  for (const RetryClass& one : classes) {
    KeyLister part;
    part.Durations("delays", one.delays, 0s, longest);
    all[one.pattern] = one.fail ? ordered_json("fail") : part.values();
  }
  retry.Value("classes", all.empty() ? ordered_json() : std::move(all));
}

}  // namespace millrace::engine
