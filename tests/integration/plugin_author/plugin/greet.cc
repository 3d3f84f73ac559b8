#include <millrace/handler.h>

class Greet final : public millrace::Handler {
  void Open(const millrace::Json& options, const millrace::Secrets&) override {
    greeting_ = options.Text("greeting", "hello");
  }
  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    const std::string name = task.Params().Text("name");
    context.Execute("UPDATE guests SET greeted = greeted + 1 WHERE name = ?", {name});
    return millrace::Done(greeting_ + ", " + name);
  }
  std::string greeting_;
};

MILLRACE_PLUGIN("greet", "1.0", millrace::Register<Greet>("greet", "Greets a guest by name"))
