#include "coordinator/app/process/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "framework/http/router.h"

namespace millrace::engine {
namespace {

using ::testing::HasSubstr;

HttpResponse Ask(const ProcessView& view, const std::string& path) {
  return Router(ProbeRoutes(view), {}).Answer({.method = "GET", .path = path, .host = "localhost"});
}

TEST(WebServerTest, AProcessThatStartsIsWellAndNotReady) {
  const ProcessView view;
  EXPECT_EQ(Ask(view, "/healthz").status, 200U);
  const HttpResponse ready = Ask(view, "/readyz");
  EXPECT_EQ(ready.status, 503U);
  EXPECT_THAT(ready.body, HasSubstr("not ready: it starts"));
  EXPECT_EQ(Ask(view, "/metrics").status, 503U) << "no series at all would look like a process that is well";
}

TEST(WebServerTest, WhatIsMissingIsSaid) {
  ProcessView view;
  view.Show([](Micros) { return ProcessFacts{.missing = {"no plan", "no beat"}}; }, [] { return "a 1\n"; });
  EXPECT_EQ(Ask(view, "/readyz").body, "not ready: no plan; no beat\n");
  EXPECT_EQ(Ask(view, "/healthz").status, 200U);
  EXPECT_EQ(Ask(view, "/metrics").body, "a 1\n");
}

TEST(WebServerTest, AThreadThatStandsStillIsUnhealthy) {
  ProcessView view;
  Micros asked{0};
  view.Show(
      [&](Micros patience) {
        asked = patience;
        return ProcessFacts{.stands_still = "scan of shard main"};
      },
      [] { return ""; });
  const HttpResponse health = Ask(view, "/healthz");
  EXPECT_EQ(health.status, 503U);
  EXPECT_THAT(health.body, HasSubstr("scan of shard main"));
  EXPECT_EQ(asked, kHealthyPatience);
}

TEST(WebServerTest, AProcessThatEndsIsNotReady) {
  ProcessView view;
  view.Show([](Micros) { return ProcessFacts{}; }, [] { return "a 1\n"; });
  EXPECT_EQ(Ask(view, "/readyz").status, 200U);
  { const ProcessView::Shown shown(view); }
  EXPECT_THAT(Ask(view, "/readyz").body, HasSubstr("it is stopping"));
  EXPECT_EQ(Ask(view, "/metrics").status, 503U);
}

TEST(WebServerTest, WhileItStopsItIsNotReadyAndItsThreadsAreWatchedStill) {
  ProcessView view;
  view.Show([](Micros) { return ProcessFacts{.stands_still = "settle of shard main"}; }, [] { return ""; });
  view.Ending();
  EXPECT_EQ(Ask(view, "/readyz").body, "not ready: it is stopping\n");
  EXPECT_EQ(Ask(view, "/healthz").status, 503U);
}

TEST(WebServerTest, FilesOfSecretsAreTheirOwnersAlone) {
  char folder[] = "/tmp/millrace-web-XXXXXX";
  const std::string file = std::string(mkdtemp(folder)) + "/tokens";
  std::ofstream(file) << "view v " << std::string(64, 'a');
  const ProcessView view;
  chmod(file.c_str(), 0640);
  const auto open = WebServer::Make({.tokens = file}, view);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, ErrorCode::Invalid);
  EXPECT_THAT(open.error().message, HasSubstr("the token file " + file + " can be read by others"));
  chmod(file.c_str(), 0600);
  EXPECT_TRUE(WebServer::Make({.tokens = file}, view));
  unlink(file.c_str());
  rmdir(folder);
}

TEST(WebServerTest, TlsNeedsBothOfItsFiles) {
  const ProcessView view;
  EXPECT_THAT(WebServer::Make({.tls_cert = "c"}, view).error().message, HasSubstr("both --tls-cert"));
  EXPECT_THAT(WebServer::Make({.tls_key = "k"}, view).error().message, HasSubstr("both --tls-cert"));
}

TEST(ProcessFactsTest, TheLoadIsWhatRunsAndTheRateSinceTheLastLook) {
  WorkerTotals before;
  before.succeeded = 1000;
  WorkerTotals now = before;
  now.succeeded = 25'000;
  now.failed = 500;
  now.retried = 500;
  now.running = 3;
  now.queued = 1200;
  EXPECT_EQ(LoadText(before, now, std::chrono::seconds(10)), "3 running, 1,200 queued, 2,500 tasks a second");
}

}  // namespace
}  // namespace millrace::engine
