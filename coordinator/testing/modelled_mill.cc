#include "coordinator/testing/modelled_mill.h"

namespace millrace::engine {

ModelledMill::ModelledMill(Parts parts, MillRemit remit, std::vector<std::string> buried)
    : state_{.remit = std::move(remit)},
      parts_{parts.timeline, parts.database, parts.process, parts.journal, parts.settings, state_},
      clock_(parts.timeline),
      settle_port_(parts_),
      settler_(clock_, settle_port_, engine_,
               [this](const Attempt& attempt, const Settlement&, SettleVerdict) {
                 state_.in_flight.Leave(attempt.task.key);
               }),
      lane_(parts_, settler_),
      scanner_(parts_, lane_),
      tender_(parts_, lane_, std::move(buried)),
      beat_(parts_, [this] { lane_.Unpark(); }),
      settle_(settler_.Run()) {
  parts_.After(ThreadName::Beat, Micros(0), [this] { beat_.Run(); });
  parts_.After(ThreadName::Scan, parts_.settings.poll, [this] { scanner_.Round(); });
  parts_.After(ThreadName::Tend, parts_.settings.poll, [this] { tender_.Run(); });
}

}  // namespace millrace::engine
