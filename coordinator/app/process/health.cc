// `millrace health`: asks a process of this machine how it is, for scripts and exec probes.
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/command.h"
#include "framework/http/client.h"

namespace millrace::engine {
namespace {

struct HealthOptions {
  CommonFlags common;
  bool ready = false;
  std::string http;
  std::string tls_ca;
  std::string wait = "2s";
};

constexpr unsigned kOkStatus = 200;

Result<std::string> AddressToAsk(const HealthOptions& options) {
  if (!options.http.empty()) return options.http;
  const std::string file =
      options.common.config.empty() ? Variable("MILLRACE_CONFIG") : options.common.config;
  if (!file.empty()) {
    BOOST_OUTCOME_TRY(config, LoadConfigFile(file));
    if (!config.engine.http.empty()) return config.engine.http;
  }
  return Fail(ErrorCode::Invalid,
              "which process is meant: give its --http ADDR, or --config FILE with engine.http in it");
}

// Where a process listens on all addresses it is asked on this machine's own.
HttpAddress Reachable(HttpAddress address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

Result<ExitCode> RunHealth(const HealthOptions& options) {
  BOOST_OUTCOME_TRY(limit, ReadDuration("--wait", options.wait));
  BOOST_OUTCOME_TRY(text, AddressToAsk(options));
  BOOST_OUTCOME_TRY(address, ParseHttpAddress(text));
  if (address.port == 0) {
    return Fail(ErrorCode::Invalid, "port 0 is any that was free: give the one that the process has said");
  }
  BOOST_OUTCOME_TRY(reply, AskHttp({Reachable(std::move(address)), options.ready ? "/readyz" : "/healthz",
                                    options.tls_ca, limit}));
  if (reply.status == kOkStatus) return ExitCode::Done;
  while (!reply.body.empty() && reply.body.back() == '\n') reply.body.pop_back();
  PrintError(reply.body.empty() ? "it answers with status " + std::to_string(reply.status) : reply.body);
  return ExitCode::SomethingFailed;
}

}  // namespace

void AddHealth(CLI::App& root, Chosen& chosen) {
  const auto health = AddCommand(root, chosen, "health", "Ask a process whether it is well, for probes",
                                 "  millrace health --ready --http :9470", RunHealth, {.json = false});
  health.app->add_flag("--ready", health->ready, "whether it can work: a plan or a store, and a fresh beat");
  health.Add("--http", health->http, "where it answers: its own --http", "ADDR");
  health.Add("--tls-ca", health->tls_ca, "it speaks TLS, with a certificate of these authorities", "FILE");
  health.Add("--wait", health->wait, "how long to wait for its answer", "TIME")->capture_default_str();
}

}  // namespace millrace::engine
