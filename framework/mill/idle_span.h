// Since when nothing was found to do.
#pragma once

#include "framework/base/clock.h"

namespace millrace::engine {

// Of the looks that found nothing, one after another: when the first and the last were sent. Of several
// shards: of the one that began last, and of the one that was looked at longest ago.
struct IdleSpan {
  BootTime since;
  BootTime looked;
};

}  // namespace millrace::engine
