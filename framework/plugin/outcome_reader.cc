#include "framework/plugin/outcome_reader.h"

#include "framework/plugin/abi.h"

namespace millrace::engine {
namespace {

constexpr std::int64_t kLatestTime =
    253'402'300'799'000'000;  // 9999-12-31T23:59:59Z, as far as a DATETIME goes
constexpr std::int64_t kLongestDelay = 100LL * 366 * 86'400 * 1'000'000;
constexpr std::size_t kMaxErrorClass = 64;

bool HasTime(OutcomeKind kind) { return kind == OutcomeKind::Retry || kind == OutcomeKind::Snooze; }

// False where the time is impossible.
bool ReadTime(const millrace_outcome& raw, Outcome& outcome) {
  if (raw.at_us != 0) {
    if (raw.at_us < 0 || raw.at_us > kLatestTime) return false;
    outcome.at = WallTime(Micros(raw.at_us));
    return true;
  }
  if (raw.delay_us == -1 && outcome.kind == OutcomeKind::Retry) return true;
  if (raw.delay_us < 0 || raw.delay_us > kLongestDelay) return false;
  outcome.delay = Micros(raw.delay_us);
  return true;
}

}  // namespace

std::string_view View(const millrace_text& text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

Outcome BadOutcome(std::string why) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text =
      "the handler's outcome is not usable: " + std::move(why) + "; this is a defect of the plugin";
  outcome.error_class = "bad_outcome";
  return outcome;
}

Outcome ReadOutcome(const millrace_outcome* given) {
  if (given == nullptr) return BadOutcome("it is a null pointer");
  const auto raw = ReadStruct(given);
  if (!raw) return BadOutcome("its struct is too small");
  constexpr OutcomeKind kKinds[] = {OutcomeKind::Done, OutcomeKind::Retry, OutcomeKind::Fail,
                                    OutcomeKind::Snooze, OutcomeKind::Skip};
  if (raw->kind < MILLRACE_DONE || raw->kind > MILLRACE_SKIP) {
    return BadOutcome("there is no kind " + std::to_string(raw->kind));
  }
  Outcome outcome;
  outcome.kind = kKinds[raw->kind];
  outcome.text = Storable(View(raw->text));
  outcome.error_class = Storable(View(raw->error_class), kMaxErrorClass);
  if (HasTime(outcome.kind) && !ReadTime(*raw, outcome)) {
    return BadOutcome("its time or delay is impossible (" + std::to_string(raw->at_us) + " us, delay " +
                      std::to_string(raw->delay_us) + " us)");
  }
  return outcome;
}

}  // namespace millrace::engine
