#include "framework/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace millrace::engine {
namespace {

using ::testing::Contains;
using ::testing::Pair;

// printf %s secret | sha256sum
constexpr const char* kViewer = "view v 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

std::vector<HttpRoute> Pages() {
  const auto says = [](const char* what) {
    return [what](const HttpRequest& request) { return HttpResponse{.body = what + request.query}; };
  };
  return {{"GET", "/open", std::nullopt, says("open ")},
          {"GET", "/seen", Role::View, says("seen ")},
          {"GET", "/both", Role::View, says("got ")},
          {"POST", "/both", Role::Admin, says("posted ")},
          {"GET", "/broken", std::nullopt,
           [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("x"); }}};
}

HttpRequest Get(const std::string& path) { return {.method = "GET", .path = path, .host = "localhost"}; }

Router::Rules WithTokens() { return {.tokens = *Tokens::Parse(kViewer, "tokens")}; }

TEST(RouterTest, ARouteAnswersItsPath) {
  const Router router(Pages(), {});
  HttpRequest request = Get("/open");
  request.query = "a=1";
  EXPECT_EQ(router.Answer(request).body, "open a=1");
  request.method = "HEAD";
  EXPECT_EQ(router.Answer(request).status, 200U);
}

TEST(RouterTest, WhatIsNotThereIs404) {
  const Router router(Pages(), {});
  for (const char* path : {"/", "/open/", "/Open", "/opens", "/../open"}) {
    EXPECT_EQ(router.Answer(Get(path)).status, 404U) << path;
  }
  EXPECT_EQ(router.Answer(Get("http://localhost/open")).status, 400U);
}

TEST(RouterTest, AWrongMethodIsToldTheRightOnes) {
  const Router router(Pages(), {});
  HttpRequest request = Get("/both");
  request.method = "DELETE";
  const HttpResponse response = router.Answer(request);
  EXPECT_EQ(response.status, 405U);
  EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD, POST")));
}

TEST(RouterTest, AForeignHostIsNotAnsweredOnLoopback) {
  HttpRequest request = Get("/open");
  request.host = "evil.example:9470";
  EXPECT_EQ(Router(Pages(), {}).Answer(request).status, 421U);
  EXPECT_EQ(Router(Pages(), {.this_machine_alone = false}).Answer(request).status, 200U);
}

TEST(RouterTest, TheNameThatItListensOnIsItsOwn) {
  const Router router(Pages(), {.own_name = "MyHost"});
  HttpRequest request = Get("/open");
  for (const char* host : {"myhost", "myhost:1", "MYHOST.:9470", "localhost:1"}) {
    request.host = host;
    EXPECT_EQ(router.Answer(request).status, 200U) << host;
  }
  for (const char* host : {"evil.example", "myhost.evil.example", "amyhost", "myhost:x", ""}) {
    request.host = host;
    EXPECT_EQ(router.Answer(request).status, 421U) << host;
  }
}

TEST(RouterTest, WithoutTokensWhoeverReachesItMayViewAndNoMore) {
  const Router router(Pages(), {});
  EXPECT_EQ(router.Answer(Get("/seen")).status, 200U);
  HttpRequest request = Get("/both");
  request.method = "POST";
  EXPECT_EQ(router.Answer(request).status, 403U);
}

TEST(RouterTest, WithTokensOneIsNeededWhereTheRouteSaysSo) {
  const Router router(Pages(), WithTokens());
  EXPECT_EQ(router.Answer(Get("/open")).status, 200U);
  const HttpResponse refused = router.Answer(Get("/seen"));
  EXPECT_EQ(refused.status, 401U);
  EXPECT_THAT(refused.headers, Contains(Pair("WWW-Authenticate", "Bearer")));
}

TEST(RouterTest, ATokensRoleDecides) {
  const Router router(Pages(), WithTokens());
  HttpRequest request = Get("/both");
  request.authorization = "Bearer secret";
  EXPECT_EQ(router.Answer(request).status, 200U);
  request.method = "POST";
  EXPECT_EQ(router.Answer(request).status, 403U);
  for (const char* wrong : {"Bearer Secret", "Basic secret", "secret", "Bearer"}) {
    request.authorization = wrong;
    EXPECT_EQ(router.Answer(request).status, 401U) << wrong;
  }
}

TEST(RouterTest, ARouteThatThrowsIs500) {
  EXPECT_EQ(Router(Pages(), {}).Answer(Get("/broken")).status, 500U);
}

}  // namespace
}  // namespace millrace::engine
