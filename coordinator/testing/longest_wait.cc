#include "coordinator/testing/longest_wait.h"

#include <cmath>

#include "framework/schedule/run_hours.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

constexpr int kLanes = 2;  // of a worker
// A permit that another worker had is read, taken and bound; or a share moves.
constexpr Micros kChangesHands = seconds(2);
// A rate that is too slow to be divided goes from worker to worker in turns of so long.
constexpr Micros kRateTurn = seconds(10);

Micros Times(double count, Micros each) {
  return Micros(static_cast<Micros::rep>(std::ceil(count * static_cast<double>(each.count()))));
}

}  // namespace

Micros LongestWait(const HandlerConfig& handler, std::size_t of_type, std::size_t of_all,
                   const HandlerModel& model, WallTime now) {
  if (of_type == 0) return Micros(0);
  // Some fail and are tried again, or snooze.
  const double again = 1 / (1 - (model.retries + model.snoozes) / 100.0);
  const double starts = again * static_cast<double>(of_type) + handler.retry.max_failures;
  Micros wait = Times(again * static_cast<double>(of_all) / kLanes, model.longest_run);
  for (const Micros delay : handler.retry.delays) wait += 2 * delay;
  if (handler.limit && handler.limit->concurrency > 0)
    wait += Times(starts / handler.limit->concurrency, model.longest_run + kChangesHands);
  if (handler.limit && handler.limit->rate > 0)
    wait += kRateTurn + Times(starts / handler.limit->rate, seconds(1));
  if (handler.breaker) wait += handler.breaker->window + 4 * handler.breaker->probe_every;
  for (const BandConfig& band : handler.bands) {
    const double turns = band.most == 0 ? 1 : std::ceil(starts / band.most);
    wait += Times(turns + handler.retry.max_failures, band.every);
  }
  if (handler.hours) {
    const RunHours hours{
        std::chrono::minutes(handler.hours->from), std::chrono::minutes(handler.hours->to), {}};
    if (!IsOpen(hours, now)) wait += *NextChange(hours, now) - now;
  }
  return wait;
}

}  // namespace millrace::engine
