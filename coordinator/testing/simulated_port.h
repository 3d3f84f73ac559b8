// A port in virtual time: what is asked for goes to a modelled database, and its answer goes on with the
// strand when it arrives. What a statement needs it holds itself: it may arrive after whoever sent it has
// given it up.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "coordinator/testing/modelled_database.h"
#include "framework/mill/step.h"

namespace millrace::engine {

// `Port` is a StrandPort. Not thread-safe.
template <class Port>
class Simulated : public Port {
 public:
  Simulated(Timeline& timeline, Strand& strand) : timeline_(timeline), strand_(strand) {}

  Reply<bool> Rest(Micros limit) final {
    rest_ = std::make_shared<Mail<bool>>();
    const bool woken = std::exchange(woken_, false);
    EndRest(woken ? kWaking : std::max(limit, kWaking), woken);
    return Reply<bool>(rest_);
  }
  void Wake() final {
    if (rest_) {
      EndRest(kWaking, true);
    } else {
      woken_ = true;
    }
  }

 protected:
  // The strand goes on after a rest.
  virtual void Woken() {}

  template <class T>
  using StatementOf = std::function<Result<T>(CheckedShard&)>;

  template <class T>
  Reply<Result<T>> ReadOf(ModelledDatabase& database, const DatabaseLink& link, StatementOf<T> statement) {
    auto mail = std::make_shared<Mail<Result<T>>>();
    database.Read<Result<T>>(link, strand_, std::move(statement), Deliver(mail));
    return Reply<Result<T>>(std::move(mail));
  }
  template <class T>
  Reply<Result<T>> WriteOf(ModelledDatabase& database, const DatabaseLink& link, StatementOf<T> statement) {
    auto mail = std::make_shared<Mail<Result<T>>>();
    database.Write<Result<T>>(link, strand_, std::move(statement), Deliver(mail));
    return Reply<Result<T>>(std::move(mail));
  }
  template <class T>
  static std::function<void(T)> Deliver(std::shared_ptr<Mail<T>> mail) {
    return [mail = std::move(mail)](T reply) { mail->Deliver(std::move(reply)); };
  }

  Timeline& timeline_;
  Strand& strand_;

 private:
  void EndRest(Micros delay, bool woken) {
    timeline_.After(delay, &strand_, [this, rest = rest_, woken] {
      if (rest != rest_) return;  // it has ended already
      rest_.reset();
      Woken();
      rest->Deliver(woken);
    });
  }

  std::shared_ptr<Mail<bool>> rest_;  // the strand rests; null: it does not
  bool woken_ = false;
};

}  // namespace millrace::engine
