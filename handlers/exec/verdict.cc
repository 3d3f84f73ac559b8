#include "verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

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

bool IsJson(std::string_view text) {
  try {
    Json::Parse(text);
    return true;
  } catch (const millrace::BadInput&) {
    return false;
  }
}

// From the bracket that begins the text to the one that closes it; empty where there are none. Bounded in
// depth, so that an output of which each line begins one is not read as often as it has lines.
std::string_view Bracketed(std::string_view text) {
  constexpr int kDeepest = 64;  // as Json reads
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (c == '\\') ++at;
    if (quoted && c != '\n') continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (quoted || depth > kDeepest) return {};
    if (depth <= 0) return text.substr(0, at == 0 ? 0 : at + 1);
  }
  return {};
}

// The JSON object or list that the text begins with, and that ends with a line; empty where there is none.
std::string_view Whole(std::string_view text) {
  const std::string_view value = Bracketed(text);
  const std::size_t next = text.find_first_not_of(" \t\r", value.size());
  const bool ends_line = next == std::string_view::npos || text[next] == '\n';
  return !value.empty() && ends_line && IsJson(value) ? value : std::string_view();
}

bool NamesOutcome(std::string_view line) {
  return line.find("\"outcome\"") != std::string_view::npos ||
         line.find("'outcome'") != std::string_view::npos;
}

// One that closes more than it opens ends what began before it.
bool StandsAlone(std::string_view line) {
  return std::ranges::count(line, '}') <= std::ranges::count(line, '{');
}

// What the text, which is trimmed, ends with: a JSON object or list, or a statement that is broken; empty
// where it is neither.
std::string_view Statement(std::string_view text) {
  std::string_view broken;
  std::string_view line;
  bool names = false;
  for (std::string_view rest = text; !rest.empty();) {
    rest.remove_prefix(rest.find_first_not_of(" \t\r\n"));
    const std::string_view whole = Whole(rest);
    if (whole.size() == rest.size()) return whole;
    line = rest.substr(0, rest.find('\n', whole.size()));
    const bool last = line.size() == rest.size();
    if (whole.empty()) {
      if (line.starts_with('{') && (!names || (last && StandsAlone(line)))) {
        broken = rest;
        names = false;
      }
      names = names || (!broken.empty() && NamesOutcome(line));
    }
    rest.remove_prefix(line.size());
  }
  return names && (text.ends_with('}') || line.starts_with('{')) ? broken : std::string_view();
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
  const std::string_view statement = Statement(text);
  if (statement.empty()) return std::nullopt;
  try {
    const Json said = Json::Parse(statement);
    if (!said.IsObject() || !said.Find("outcome")) return std::nullopt;
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
