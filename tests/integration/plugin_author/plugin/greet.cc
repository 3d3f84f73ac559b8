// A plugin as its author would write it, outside of Millrace's tree.
#include <millrace/handler.h>

class Greet final : public millrace::Handler {
  void Open(const millrace::Json& options, const millrace::Secrets&) override {
    greeting_ = options.Text("greeting", "hello");
  }
  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    context.Info("greeting somebody");
    return millrace::Done(greeting_ + ", " + task.Params().Text("name"));
  }
  std::string greeting_;
};

MILLRACE_PLUGIN("greet", "1.0", millrace::Register<Greet>("greet", "Greets a person by name"))
