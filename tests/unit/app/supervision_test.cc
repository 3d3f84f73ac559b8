#include "coordinator/app/process/supervision.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Optional;

const BootTime kSupervisedFrom(seconds(1000));

std::unique_ptr<HttpServer> Occupy(const std::string& address) {
  auto server = HttpServer::Start({.address = address});
  EXPECT_TRUE(server) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

std::string AddressOf(const HttpServer& server) { return server.url().substr(server.url().find("//") + 2); }

class SupervisionTest : public testing::Test {
 protected:
  static EngineConfig At(const std::string& address) {
    EngineConfig engine;
    engine.http = address;
    return engine;
  }

  std::unique_ptr<Supervision> supervision_ = *Supervision::Begin({}, {});
};

TEST_F(SupervisionTest, AnAddressThatIsTakenIsTriedAgainUntilItIsFree) {
  auto other = Occupy("127.0.0.1:0");
  const EngineConfig engine = At(AddressOf(*other));
  EXPECT_EQ(supervision_->Listens(engine), std::nullopt);
  testing::internal::CaptureStderr();
  supervision_->Update(engine, kSupervisedFrom);
  EXPECT_THAT(supervision_->Listens(engine), Optional(HasSubstr("another process listens on")));
  supervision_->Update(engine, kSupervisedFrom + seconds(20));
  supervision_->Update(engine, kSupervisedFrom + seconds(40));
  other.reset();
  supervision_->Update(engine, kSupervisedFrom + seconds(40) + milliseconds(50));
  EXPECT_THAT(supervision_->Listens(engine), Optional(HasSubstr("another process"))) << "not all the time";
  supervision_->Update(engine, kSupervisedFrom + seconds(50));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(supervision_->Listens(engine), "");
  const auto complaint = said.find("engine.http is not in force here");
  EXPECT_NE(complaint, said.npos);
  EXPECT_EQ(said.find("engine.http is not in force here", complaint + 1), said.npos) << "once: " << said;
  EXPECT_THAT(said, HasSubstr("listening on http://" + engine.http));
}

TEST_F(SupervisionTest, WhereItIsServedElsewhereThatIsNotCutOffForAnotherTry) {
  auto free = Occupy("127.0.0.1:0");
  const EngineConfig first = At(AddressOf(*free));
  free.reset();
  supervision_->Update(first, kSupervisedFrom);
  EXPECT_EQ(supervision_->Listens(first), "");
  auto other = Occupy("127.0.0.1:0");
  const EngineConfig second = At(AddressOf(*other));
  supervision_->Update(second, kSupervisedFrom + seconds(1));
  EXPECT_THAT(supervision_->Listens(second), Optional(HasSubstr("another process listens on")));
  other.reset();
  supervision_->Update(second, kSupervisedFrom + seconds(60));
  EXPECT_THAT(supervision_->Listens(second), Optional(HasSubstr("another process listens on")));
  supervision_->Update(first, kSupervisedFrom + seconds(61));
  EXPECT_EQ(supervision_->Listens(first), "");
}

}  // namespace
}  // namespace millrace::engine
