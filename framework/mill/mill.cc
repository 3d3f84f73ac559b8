#include "framework/mill/mill.h"

namespace millrace::engine {

Mill::Mill(const Shared& shared, const Ports& ports, Options options)
    : shard_(std::move(options.shard)),
      tend_(ports.tend),
      scope_(shard_, options.self.worker),
      settler_(
          shared.clock, {ports.settle, ports.second_settle}, shared.engine,
          [this](std::span<const SettledAttempt> settled) { attempts_.Known(settled); },
          [this](Attempt& attempt) { attempts_.Dropped(attempt); }),
      attempts_({shard_, scope_, shared.runner, shared.gate, shared.memory, shared.counters, shared.admission,
                 shared.clock, settler_, [this] { scans_.Wake(); }, ports.open_transaction}),
      scans_({shared.clock, shard_, scope_, lives_, attempts_, shared.runner, shared.gate, shared.engine,
              shared.counters, shared.admission, ports.beat, options.watch_idle},
             ports.scan),
      maintenance_({shared.clock, shard_, scope_, lives_, attempts_, scans_, shared.counters, shared.engine},
                   ports.tend),
      beat_({shared.clock, std::move(options.address), std::move(options.self), shared.engine, lives_,
             shared.counters.marked_dead, Random(options.seed)},
            ports.beat, [this](Beat::News news) { Hear(news); }) {}

void Mill::Hear(Beat::News news) {
  switch (news) {
    case Beat::News::Born:
      scans_.LookAgain();
      break;
    case Beat::News::Renewed:
      attempts_.Unpark();
      break;
    case Beat::News::Died:
      died_.store(true);  // what is queued was claimed by the dead life
      attempts_.Unpark();
      break;
    case Beat::News::PeerGone:
      tend_.Wake();
      break;
  }
}

bool Mill::Follow(std::vector<TableSlices> slices, std::shared_ptr<const Pauses> paused) {
  const bool followed = scope_.Follow(std::move(slices), std::move(paused));
  scans_.Follow(followed);
  const bool died = died_.exchange(false);
  return scans_.TakePausesChanged() || died || followed;
}

void Mill::Rung(const Ring& ring) {
  if (scope_.Touches(ring)) scans_.Rung(ring);
}

void Mill::Retire() {
  attempts_.Retire();
  StopClaiming();
}

void Mill::Stop() {
  scans_.Stop();
  maintenance_.Stop();
  settler_.Stop();
  beat_.Stop(true);
}

}  // namespace millrace::engine
