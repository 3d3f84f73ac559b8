// POSTs a task's parameters, as they are, to a URL that the configuration names.
#include <millrace/handler.h>

#include <optional>

#include "post.h"

namespace http_call {
namespace {

class HttpCall final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    options.AllowOnly({"url", "headers", "timeout_ms", "ca_file"});
    url_ = options.Text("url");
    Poster::CheckUrl(url_, "url");
    poster_.emplace(options, secrets);
  }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    task.Params();
    return poster_->Post(url_, task.ParamsText(), task.IdempotencyKey(), context);
  }

 private:
  std::string url_;
  std::optional<Poster> poster_;
};

}  // namespace
}  // namespace http_call

MILLRACE_PLUGIN("http_call", "1.0",
                millrace::Register<http_call::HttpCall>("http_call", "POSTs a task's parameters to a URL"))
