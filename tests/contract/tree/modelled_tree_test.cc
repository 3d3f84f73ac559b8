// The contract of the tree on the simulator's modelled ensemble: what holds for the real one holds for it.
#include <algorithm>
#include <deque>
#include <map>

#include "coordinator/testing/modelled_client.h"
#include "tests/contract/tree/tree_contract.h"

namespace millrace::engine {
namespace {

constexpr Micros kTimeout = std::chrono::seconds(1);

// A blocking client: while it waits, virtual time goes by for all.
class ModelledSession final : public TreeSession {
 public:
  // What it needs beyond its own end, for what is still under way then.
  struct Rest {
    TreeLinks links;
    Strand strand;
  };

  ModelledSession(Timeline& timeline, ModelledEnsemble& ensemble, Rest& rest)
      : timeline_(timeline),
        rest_(rest),
        client_({timeline, ensemble, rest.strand, rest.links, kTimeout},
                [this](const TreeEvent& event) { Hear(event); }) {}
  ~ModelledSession() override {
    client_.Close();
    ++rest_.strand.life;
  }

  TreeLinks& links() { return rest_.links; }
  std::int64_t session() const { return client_.Session(); }

  std::vector<TreeReply> PerformAll(const std::vector<TreeRequest>& requests) override {
    TreeReply lost;
    lost.message = "not connected";
    std::vector<TreeReply> replies(requests.size(), lost);
    if (!usable_) return replies;
    const auto answers = std::make_shared<std::vector<TreeReply>>();
    for (const TreeRequest& request : requests)
      client_.Ask(request, [answers](const TreeReply& reply) { answers->push_back(reply); });
    const BootTime end = timeline_.Now() + 2 * kTimeout;
    while (answers->size() < requests.size() && timeline_.Step(end)) {
    }
    std::copy(answers->begin(), answers->end(), replies.begin());
    return replies;
  }

  std::optional<TreeEvent> WaitEvent(Micros limit) override {
    const bool endless = limit > std::chrono::hours(1);
    const BootTime end = endless ? BootTime::max() : timeline_.Now() + limit;
    while (events_.empty() && !interrupted_ && timeline_.Step(end)) {
    }
    if (interrupted_ || events_.empty()) {
      interrupted_ = false;
      return std::nullopt;
    }
    TreeEvent event = std::move(events_.front());
    events_.pop_front();
    if (event.kind == TreeEvent::Kind::Connected) usable_ = client_.Connected();
    return event;
  }

  void Interrupt() override { interrupted_ = true; }
  BootTime LastContact() const override { return client_.LastContact(); }
  Micros Timeout() const override { return kTimeout; }

 private:
  void Hear(const TreeEvent& event) {
    if (event.kind == TreeEvent::Kind::Disconnected || event.kind == TreeEvent::Kind::Expired)
      usable_ = false;
    events_.push_back(event);
  }

  Timeline& timeline_;
  Rest& rest_;
  bool usable_ = false;  // connected, and the owner was told
  bool interrupted_ = false;
  std::deque<TreeEvent> events_;
  ModelledClient client_;
};

class ModelledTree final : public TreeFixture {
 public:
  ModelledTree() {
    ensemble_.Observe(
        [this](const TreeChanges& changes, std::int64_t session) { Committed(changes, session); });
  }

  std::unique_ptr<TreeSession> Open() override {
    return std::make_unique<ModelledSession>(timeline_, ensemble_, rests_.emplace_back());
  }

  void Cut(TreeSession& session) override { SetOpen(session, false); }
  void Mend(TreeSession& session) override { SetOpen(session, true); }
  void AwaitExpiry(TreeSession&) override { timeline_.RunUntil(timeline_.Now() + 2 * kTimeout); }
  void LoseReply(TreeSession& session, const std::string& text) override {
    victim_ = static_cast<ModelledSession*>(&session);
    text_ = text;
  }
  BootTime Now() const override { return timeline_.Now(); }

 private:
  static void SetOpen(TreeSession& session, bool open) {
    for (TreeLink& link : static_cast<ModelledSession&>(session).links()) {
      link.to_server = link.to_client = open;
    }
  }

  void Committed(const TreeChanges& changes, std::int64_t session) {
    if (victim_ == nullptr || victim_->session() != session || changes.nodes.front() != text_) return;
    SetOpen(*victim_, false);
    timeline_.After(std::chrono::milliseconds(50), [victim = victim_] { SetOpen(*victim, true); });
    victim_ = nullptr;
  }

  Timeline timeline_{1};
  ModelledEnsemble ensemble_{timeline_};
  std::deque<ModelledSession::Rest> rests_;
  ModelledSession* victim_ = nullptr;
  std::string text_;
};

INSTANTIATE_TEST_SUITE_P(Modelled, TreeContract,
                         testing::Values(TreeKind{"modelled",
                                                  [] { return std::make_unique<ModelledTree>(); }}));

}  // namespace
}  // namespace millrace::engine
