// millrace handler breaker: what an operator says of a circuit breaker. It stands beside the pauses and goes
// their ways.
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/pause_places.h"
#include "coordinator/app/command/command.h"
#include "framework/base/suggest.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

struct BreakerOptions {
  CommonFlags common;
  std::string handler;
  std::string word;
  bool force = false;
  std::string reason;
};

constexpr const char* kOpened = "open: within 2 s nothing of it starts, on any worker; what runs is finished";
constexpr const char* kClosed = "closed: its tasks start, and it does not open by itself";
constexpr const char* kAuto = "it goes by its rules; where it was open by hand, a probe closes it";

Result<BreakerHand> ReadHand(const std::string& word) {
  if (word == "open") return BreakerHand::Open;
  if (word == "close") return BreakerHand::Close;
  if (word == "auto") return BreakerHand::Auto;
  return Fail(ErrorCode::Invalid, "'" + word + "' is no state of a breaker; give open, close or auto");
}

Result<ExitCode> RunHandlerBreaker(const BreakerOptions& options) {
  BOOST_OUTCOME_TRY(hand, ReadHand(options.word));
  const std::string handler = "handler:" + options.handler;
  if (!Pauses::Parse(std::vector{handler}))
    return Fail(ErrorCode::Invalid, "'" + options.handler + "' is no name of a task type");
  BOOST_OUTCOME_TRYV(CheckReason(options.reason));
  BOOST_OUTCOME_TRY(places, PausePlaces::Find(options.common));
  if (!options.force && hand != BreakerHand::Auto) {
    const PauseTargets known = places.Known(options.common, {handler});
    if (known.types && !known.types->contains(options.handler))
      return Fail(
          ErrorCode::Invalid,
          "no breaker was changed: nobody runs the task type '" + options.handler + "'" +
              NearestOf(options.handler, {known.types->begin(), known.types->end()}, "; there are ", 8) +
              "; to change it all the same, add --force");
  }
  for (const BreakerHand other : {BreakerHand::Open, BreakerHand::Close}) {
    const std::vector<std::string> name{BreakerHandName(options.handler, other)};
    BOOST_OUTCOME_TRYV(places.Set(name, other == hand, options.reason));
  }
  PrintAnswer(options.common, {{"handler", options.handler}, {"breaker", options.word}},
              hand == BreakerHand::Open    ? kOpened
              : hand == BreakerHand::Close ? kClosed
                                           : kAuto);
  return places.complete() ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace

void AddHandlerBreaker(CLI::App& handler, Chosen& chosen) {
  const auto breaker = AddCommand(
      handler, chosen, "breaker", "Open or close a circuit breaker by hand, or leave it to its rules",
      "  millrace handler breaker http_call open --reason 'the partner asked for an hour'\n"
      "  millrace handler breaker http_call auto",
      RunHandlerBreaker);
  AddFolders(*breaker.app, breaker->common);
  breaker.Add("handler,--handler", breaker->handler, "the task type", "NAME")->required();
  breaker.Add("state", breaker->word, "open, close or auto", "STATE")->required();
  breaker.Add("--reason", breaker->reason, "why, for status and task why", "TEXT");
  breaker.app->add_flag("--force", breaker->force, "also of a task type that nobody runs yet");
}

}  // namespace millrace::engine
