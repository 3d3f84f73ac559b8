#include <millrace/handler.h>

class Greet final : public millrace::Handler {
  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    context.Info("hello, " + task.Params().Text("name"));
    return millrace::Done();
  }
};
MILLRACE_PLUGIN("greet", "1.0", millrace::Register<Greet>("greet", "Greets a person by name"))
