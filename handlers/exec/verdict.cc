#include "verdict.h"

#include <cmath>
#include <optional>

namespace exec_handler {
namespace {

using millrace::Json;
using millrace::Outcome;

constexpr int kTemporaryFailure = 75;  // EX_TEMPFAIL of sysexits.h
constexpr double kLongestDelay = 86'400.0 * 366;

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::string LastLine(const std::string& text) { return Trimmed(text.substr(text.rfind('\n') + 1)); }

bool IsJson(const std::string& text) {
  try {
    Json::Parse(text);
    return true;
  } catch (const millrace::BadInput&) {
    return false;
  }
}

// The object that the text, which is trimmed, ends with: in its last line, or begun by an earlier one that is
// no object by itself. Also one that is broken, where it speaks of an outcome; empty where there is none.
std::string LastObject(const std::string& text) {
  std::string broken;
  std::size_t begin = text.size() + 1;
  do {
    begin = text.rfind('\n', begin - 2) + 1;
    if (text[text.find_first_not_of(" \t", begin)] != '{') continue;
    std::string object = text.substr(begin);
    if (IsJson(object)) return object;
    if (IsJson(object.substr(0, object.find('\n')))) break;
    broken = std::move(object);
  } while (begin > 1 && text.ends_with('}'));
  return broken.find("outcome") == std::string::npos ? "" : broken;
}

Outcome WithDelay(Outcome outcome, const Json& said) {
  if (!said.Find("delay_seconds")) return outcome;
  const double seconds = said.Number("delay_seconds");
  if (!(seconds >= 0) || seconds > kLongestDelay) throw millrace::BadInput("'delay_seconds' is out of range");
  return std::move(outcome).After(millrace::Duration(std::llround(seconds * 1e6)));
}

Outcome OutcomeOf(const Json& said) {
  const std::string kind = said.Text("outcome");
  const std::string text = said.Text("text", "");
  const std::string error_class = said.Text("class", "");
  if (kind == "done") return millrace::Done(text);
  if (kind == "retry") return WithDelay(millrace::Retry(text), said).Class(error_class);
  if (kind == "fail") return millrace::Fail(text).Class(error_class);
  if (kind == "snooze") return WithDelay(millrace::Snooze(std::chrono::minutes(1)), said);
  if (kind == "skip") return millrace::Skip(text);
  throw millrace::BadInput("'outcome' must be done, retry, fail, snooze or skip, is '" + kind + "'");
}

// None where the text is a result like any other.
std::optional<Outcome> Stated(const std::string& text) {
  const std::string object = text.empty() ? "" : LastObject(text);
  if (object.empty()) return std::nullopt;
  try {
    const Json said = Json::Parse(object);
    if (!said.Find("outcome")) return std::nullopt;
    return OutcomeOf(said);
  } catch (const millrace::BadInput& error) {
    return millrace::Retry(std::string("what the program says of its outcome is not usable: ") + error.what())
        .Class("bad_outcome");
  }
}

std::string Why(const ProgramEnd& end, const std::string& what) {
  const std::string errors = Trimmed(end.errors);
  return errors.empty() ? what : what + ": " + errors;
}

}  // namespace

Outcome Judge(const ProgramEnd& end, const std::set<int>& fail_on) {
  if (!end.problem.empty()) return millrace::Retry(end.problem).Class("not_started");
  if (end.reaped) {
    return millrace::Retry(
               "how the program ended is not known: SIGCHLD is ignored, or others wait for any child")
        .Class("end_unknown");
  }
  if (end.signal == 0 && end.code == 0) {
    const std::string output = Trimmed(end.output);
    if (auto stated = Stated(output)) return *std::move(stated);
    if (!end.stopped) return millrace::Done(LastLine(output));
  }
  if (end.stopped)
    return millrace::Retry(Why(end, "the program was stopped before it had finished")).Class("stopped");
  if (end.signal != 0) {
    return millrace::Retry(Why(end, "the program was killed by signal " + std::to_string(end.signal)))
        .Class("killed");
  }
  const std::string what = Why(end, "the program ended with code " + std::to_string(end.code));
  const std::string error_class = "exit_" + std::to_string(end.code);
  if (end.code != kTemporaryFailure && fail_on.contains(end.code))
    return millrace::Fail(what).Class(error_class);
  return millrace::Retry(what).Class(error_class);
}

}  // namespace exec_handler
