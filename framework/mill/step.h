// How a strand of the mill is written: straight-line code that awaits what it asks for.
//
// A strand (scan, settle, tend, beat) is a coroutine. What it asks of the outside, a statement or a sleep, is
// a Reply: in the product the strand's own thread has waited for it, so it is there at once and nothing is
// suspended; in the simulator it is told in virtual time. A `co_await` is therefore the only place where the
// world may have changed before the next line.
//
// Name what is awaited before it is awaited: GCC 12 destroys aggregates that are made within a `co_await`
// expression twice.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "framework/base/clock.h"

namespace millrace::engine {

// Where an answer is put for a strand that waits for it. Not thread-safe.
template <class T>
class Mail {
 public:
  // Once. Goes on with the strand that waits; returns when that waits for something else, or has ended.
  void Deliver(T value) {
    value_ = std::move(value);
    if (waiting_) std::exchange(waiting_, nullptr).resume();
  }

 private:
  template <class>
  friend class Reply;
  std::optional<T> value_;
  std::coroutine_handle<> waiting_;
};

// What came of a request: known already, or to be delivered. To be awaited once.
template <class T>
class [[nodiscard]] Reply {
 public:
  Reply(T value) : state_(std::move(value)) {}
  explicit Reply(std::shared_ptr<Mail<T>> mail) : state_(std::move(mail)) {}

  bool await_ready() const {
    const auto* mail = std::get_if<std::shared_ptr<Mail<T>>>(&state_);
    return mail == nullptr || (*mail)->value_.has_value();
  }
  void await_suspend(std::coroutine_handle<> strand) {
    std::get<std::shared_ptr<Mail<T>>>(state_)->waiting_ = strand;
  }
  T await_resume() {
    if (auto* value = std::get_if<T>(&state_)) return std::move(*value);
    return std::move(*std::get<std::shared_ptr<Mail<T>>>(state_)->value_);
  }

 private:
  std::variant<T, std::shared_ptr<Mail<T>>> state_;
};

// A part of a strand, or a whole one. It begins at once, and is awaited by the part that called it; to
// destroy it ends it where it waits, with all that it holds. Not thread-safe.
template <class T = void>
class Step;

namespace internal {

struct StepPromise {
  struct End {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> step) const noexcept {
      const std::coroutine_handle<> waiting = step.promise().waiting;
      return waiting ? waiting : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_never initial_suspend() const noexcept { return {}; }
  End final_suspend() const noexcept { return {}; }
  void unhandled_exception() const noexcept { std::terminate(); }

  std::coroutine_handle<> waiting;  // who called it, once that waits
};

template <class T>
struct ValuePromise : StepPromise {
  Step<T> get_return_object();
  void return_value(T result) { value = std::move(result); }
  T Take() { return std::move(*value); }
  std::optional<T> value;
};

struct VoidPromise : StepPromise {
  Step<void> get_return_object();
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

}  // namespace internal

template <class T>
class [[nodiscard]] Step {
 public:
  using promise_type =
      std::conditional_t<std::is_void_v<T>, internal::VoidPromise, internal::ValuePromise<T>>;

  explicit Step(std::coroutine_handle<promise_type> step) : step_(step) {}
  Step(Step&& other) noexcept : step_(std::exchange(other.step_, nullptr)) {}
  Step& operator=(Step&& other) noexcept {
    std::swap(step_, other.step_);
    return *this;
  }
  ~Step() {
    if (step_) step_.destroy();
  }

  bool Done() const { return step_.done(); }

  bool await_ready() const { return step_.done(); }
  void await_suspend(std::coroutine_handle<> caller) { step_.promise().waiting = caller; }
  T await_resume() { return step_.promise().Take(); }

 private:
  std::coroutine_handle<promise_type> step_;
};

template <class T>
Step<T> internal::ValuePromise<T>::get_return_object() {
  return Step<T>(std::coroutine_handle<ValuePromise>::from_promise(*this));
}
inline Step<void> internal::VoidPromise::get_return_object() {
  return Step<void>(std::coroutine_handle<VoidPromise>::from_promise(*this));
}

// A strand's way to the outside. Its requests belong to the strand; Wake is thread-safe.
class StrandPort {
 public:
  virtual ~StrandPort() = default;
  // Rests until Wake or for `limit`; a Wake before it ends the next rest at once. True if woken.
  virtual Reply<bool> Rest(Micros limit) = 0;
  virtual void Wake() = 0;
};

}  // namespace millrace::engine
