// Does nothing, and succeeds. For trying things out, and for measuring the engine alone.
#include <millrace/handler.h>

namespace {

class Noop final : public millrace::Handler {
  millrace::Outcome Run(const millrace::Task&, millrace::Context&) override { return millrace::Done(); }
};

}  // namespace

MILLRACE_PLUGIN("noop", "1.0", millrace::Register<Noop>("noop", "Does nothing, and succeeds"))
