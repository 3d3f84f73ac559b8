#include "coordinator/alerts/watch.h"

#include <algorithm>
#include <utility>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenTurns = std::chrono::seconds(1);  // while somebody else judges, or nothing is to be
// A shard that did not answer is left alone so long, and the longer, the longer that took: the others' alerts
// wait for it.
constexpr Micros kSilence = std::chrono::seconds(15);
constexpr Micros kLongestSilence = std::chrono::minutes(2);
constexpr std::size_t kExamples = 5;
constexpr int kDutyCycle = 20;  // it looks for no more than this part of the time
constexpr Micros kLongestWait = std::chrono::seconds(30);

}  // namespace

Status AlertWatch::Start() {
  stopped_.store(false);
  Status started = thread_.Start("alerts", [this] {
    Run();
    stopped_.store(true);
  });
  if (!started) stopped_.store(true);
  return started;
}

AlertWatch::~AlertWatch() {
  stopping_.store(true);
  wake_.Notify();
  thread_.Join();
}

bool AlertWatch::Stop() {
  stopping_.store(true);
  wake_.Notify();
  Signal never;
  for (int i = 0; i < 100 && !stopped_.load(); ++i) never.WaitFor(std::chrono::milliseconds(10));
  return stopped_.load();
}

std::vector<std::string> AlertWatch::Troubles() const {
  MutexLock lock(mutex_);
  return troubles_;
}

void AlertWatch::Run() {
  while (!stopping_.load()) wake_.WaitFor(Turn());
}

Micros AlertWatch::Turn() {
  const std::shared_ptr<const Config> config = parts_.config();
  const std::optional<AlertPlace> place = config->alerts.empty() ? std::nullopt : parts_.place();
  if (place) return Round(*config, *place);
  Forget();
  return kBetweenTurns;
}

// Another process may say something meanwhile.
void AlertWatch::Forget() {
  alerts_.clear();
  shards_.clear();
  silent_.clear();
  MutexLock lock(mutex_);
  troubles_.clear();
}

Micros AlertWatch::Round(const Config& config, const AlertPlace& place) {
  Follow(config, parts_.shards());
  const BootTime now = parts_.clock.Now();
  const Observation seen = Observe(config, place, now);
  Micros wait = AlertJudge::kLook;
  for (auto& [name, judged] : alerts_) {
    if (stopping_.load()) return wait;
    Judge(name, judged, seen, place, now);
    wait = std::min(wait, judged.judge.Wait());
  }
  Tell();
  if (wait < AlertJudge::kLook) return wait;  // for seconds at most
  return std::max(wait, std::min<Micros>(kDutyCycle * looked_, kLongestWait));
}

void AlertWatch::Follow(const Config& config, const StoresByShard& shards) {
  std::erase_if(shards_, [&](const auto& known) {
    const auto found = shards.find(known.first);
    return found == shards.end() || found->second != known.second->store();
  });
  for (const auto& [name, store] : shards) {
    if (!shards_.contains(name)) shards_.emplace(name, std::make_unique<AlertShard>(name, store));
  }
  std::erase_if(silent_, [&](const auto& silent) { return !shards_.contains(silent.first); });
  // One whose words were changed is judged anew; what was said of it stands.
  std::erase_if(alerts_, [&](const auto& known) {
    const auto found = config.alerts.find(known.first);
    return found == config.alerts.end() || found->second != known.second.config;
  });
  for (const auto& [name, alert] : config.alerts) alerts_.try_emplace(name, Judged{alert});
}

Observation AlertWatch::Observe(const Config& config, const AlertPlace& place, BootTime now) {
  AlertNeeds needs = NeedsOf(config.alerts);
  needs.config = &config;
  Observation seen;
  seen.unowned = place.unowned;
  seen.breakers = place.breakers;
  looked_ = Micros(0);
  for (const auto& [name, shard] : shards_) {
    const auto silent = silent_.find(name);
    if (silent != silent_.end() && now < silent->second.until) {
      seen.whole = false;
      continue;
    }
    const BootTime begun = parts_.clock.Now();
    const Status answered = shard->Observe(needs, place, now, seen);
    const BootTime ended = parts_.clock.Now();
    if (answered) {
      silent_.erase(name);
      looked_ += ended - begun;
    } else {
      seen.whole = false;
      silent_[name] = {ended + std::clamp<Micros>(kDutyCycle * (ended - begun), kSilence, kLongestSilence),
                       answered.error().message};
    }
  }
  if (seen.events) {
    std::stable_sort(seen.events->begin(), seen.events->end(),
                     [](const SeenEvent& a, const SeenEvent& b) { return a.ago > b.ago; });
  }
  return seen;
}

std::optional<SaidAlert> AlertWatch::ReadSaid(const std::string& name, BootTime now) {
  std::optional<SaidAlert> last;
  for (const auto& [shard_name, shard] : shards_) {
    if (silent_.contains(shard_name)) continue;
    const auto said = shard->Said(name, now);
    if (said && (!last || said->number > last->number)) last = *said;
  }
  return last;
}

void AlertWatch::Judge(const std::string& name, Judged& judged, const Observation& seen,
                       const AlertPlace& place, BootTime now) {
  if (!judged.said) judged.said = ReadSaid(name, now);
  if (!judged.said) return;  // no shard answers
  const std::optional<AlertFact> fact = FactOf(judged.config, seen);
  // What people have retried or cancelled counts no more: of as many new ones beside the rest they are told
  // again.
  if (judged.config.kind == AlertKind::Failed && seen.whole && fact && fact->holds && judged.said->firing)
    judged.said->count = std::min(judged.said->count, fact->count);
  const SaidAlert said = SaidFor(judged.config, fact && fact->holds, *judged.said);
  const AlertWord word = judged.judge.Look(fact, said, judged.config.every, now);
  if (fact && !fact->holds && !said.firing) judged.since.reset();
  if (fact && fact->holds && !judged.since) {
    judged.since = std::chrono::floor<std::chrono::seconds>(parts_.clock.WallNow());
  }
  if (word != AlertWord::Nothing) {
    Send(name, judged, *fact, word == AlertWord::Firing, place, now);
  } else if (fact) {
    judged.trouble.clear();  // nothing is to be sent
  }
}

void AlertWatch::Send(const std::string& name, Judged& judged, const AlertFact& fact, bool firing,
                      const AlertPlace& place, BootTime now) {
  const SaidAlert said = SaidFor(judged.config, firing, *judged.said);
  // Others may have gone past this number and taken its message back, which frees the key.
  const std::optional<SaidAlert> last = ReadSaid(name, now);
  if (last && last->number > said.number) {
    judged.said.reset();
    return;
  }
  const WallTime wall = std::chrono::floor<std::chrono::seconds>(parts_.clock.WallNow());
  Notice notice{.alert = name, .number = said.number + 1, .firing = firing, .from = parts_.from};
  notice.since = said.firing && said.since != WallTime{} ? said.since : judged.since.value_or(wall);
  notice.at = wall;
  notice.fact = fact;
  if (firing && judged.config.kind == AlertKind::Failed) {
    for (const auto& [shard_name, shard] : shards_) {
      if (silent_.contains(shard_name) || notice.examples.size() >= kExamples) continue;
      const auto more = shard->FailedExamples(judged.config.handler, kExamples - notice.examples.size());
      notice.examples.insert(notice.examples.end(), more.begin(), more.end());
    }
  }
  judged.trouble = "no shard answers";
  for (const auto& [shard_name, shard] : shards_) {
    if (silent_.contains(shard_name)) continue;
    const auto added = shard->Add(TasksOf(notice, judged.config), place);
    if (!added) {
      judged.trouble = added.error().message;
      // Whether it was added is not known: the ledger says. Where nothing was, another shard may take it.
      const ErrorCode code = added.error().code;
      if (code == ErrorCode::Unknown || code == ErrorCode::Conflict) judged.said.reset();
      if (!judged.said) return;
      continue;
    }
    judged.trouble.clear();
    if (!*added) {  // somebody else has said it
      judged.said.reset();
      return;
    }
    LogWarning(firing ? "an alert fires" : "an alert is over",
               {{"alert", name}, {"what", fact.what}, {"message", notice.number}, {"shard", shard_name}});
    TakeBack(name, notice.number, !firing);
    judged.said = {notice.number, firing, fact.count, notice.since, firing ? now : said.fired_at, fact.names};
    judged.said->kind = WordOf(judged.config.kind);
    judged.said->handler = judged.config.handler;
    if (!firing) judged.since.reset();
    return;
  }
}

void AlertWatch::TakeBack(const std::string& name, std::uint64_t before, bool running) {
  for (const auto& [shard_name, shard] : shards_) {
    if (!silent_.contains(shard_name)) shard->Withdraw(name, before, running);
  }
}

void AlertWatch::Tell() {
  std::vector<std::string> troubles;
  for (const auto& [name, judged] : alerts_) {
    if (!judged.trouble.empty())
      troubles.push_back("the alert " + name + " can't be sent: " + judged.trouble);
  }
  for (const auto& [name, silence] : silent_)
    troubles.push_back("alerts do not see what is wrong in the shard " + name + ": " + silence.why);
  for (const auto& [name, shard] : shards_) {
    for (std::string& trouble : TroublesOf(shard->unsent(), name)) troubles.push_back(std::move(trouble));
    for (const auto& [table, why] : shard->unread())
      troubles.push_back("alerts do not see what is due in " + name + "/" + table +
                         ", and nothing late or without a worker is over until they do: " + why);
  }
  std::vector<std::string> fresh;
  {
    MutexLock lock(mutex_);
    std::sort(troubles.begin(), troubles.end());
    std::set_difference(troubles.begin(), troubles.end(), troubles_.begin(), troubles_.end(),
                        std::back_inserter(fresh));
    troubles_ = std::move(troubles);
  }
  for (const std::string& trouble : fresh) LogError("alerts are in trouble", {{"what", trouble}});
}

}  // namespace millrace::engine
