// What the handlers that use libcurl share: an easy handle that ends when the attempt should.
#pragma once

#include <curl/curl.h>
#include <millrace/handler.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// Once per process, before threads use the library.
class CurlLibrary {
 public:
  static void Start() { static const CurlLibrary library; }

 private:
  CurlLibrary() { ::curl_global_init(CURL_GLOBAL_DEFAULT); }
};

// The option `timeout_ms`: the longest that a transfer may take, a day at most.
inline std::chrono::milliseconds ReadTimeout(const millrace::Json& options) {
  return std::chrono::milliseconds(options.Integer("timeout_ms", 30'000, 1, 24 * 60 * 60 * 1000));
}

struct FreeCurlList {
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeCurlList>;

// Throws std::bad_alloc where there is no memory for it.
inline void Append(CurlList& list, const std::string& line) {
  curl_slist* longer = ::curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  static_cast<void>(list.release());
  list.reset(longer);
}

struct FreeCurlHandle {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};
using CurlHandle = std::unique_ptr<CURL, FreeCurlHandle>;

inline CurlHandle NewCurlHandle() {
  CurlHandle handle(::curl_easy_init());
  if (!handle) throw std::bad_alloc();
  return handle;
}

// Handles that were used, with their connections, the last one on top: so the next call finds one that is
// warm. There are as many as there ever were transfers at once. Thread-safe.
class CurlPool {
 public:
  CurlHandle Take() {
    const std::lock_guard lock(mutex_);
    if (handles_.empty()) return NewCurlHandle();
    CurlHandle handle = std::move(handles_.back());
    handles_.pop_back();
    return handle;
  }
  // Its options are forgotten, its connections kept.
  void Put(CurlHandle handle) noexcept {
    ::curl_easy_reset(handle.get());
    try {
      const std::lock_guard lock(mutex_);
      handles_.push_back(std::move(handle));
    } catch (...) {
      // Only for want of memory: then it is closed.
    }
  }

 private:
  std::mutex mutex_;
  std::vector<CurlHandle> handles_;
};

// One transfer, within the attempt's time and until it should stop. Not thread-safe.
class CurlTransfer {
 public:
  // By a connection of its own.
  explicit CurlTransfer(millrace::Context& context) : CurlTransfer(context, nullptr) {}
  // By a connection of the pool, which outlives it and gets it back.
  CurlTransfer(millrace::Context& context, CurlPool& pool) : CurlTransfer(context, &pool) {}
  ~CurlTransfer() {
    if (pool_ != nullptr) pool_->Put(std::move(handle_));
  }
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  template <class Value>
  void Set(CURLoption option, Value value) {
    const CURLcode code = ::curl_easy_setopt(handle_.get(), option, value);
    if (code != CURLE_OK) throw millrace::EngineError(std::string("libcurl: ") + ::curl_easy_strerror(code));
  }

  // Ends the transfer from when this says that what was wanted of it is there, as a stop would. `arrived` is
  // called by Perform alone.
  void EndOnce(std::function<bool()> arrived) { arrived_ = std::move(arrived); }

  // `limit` is the longest it may take even where the attempt has more time.
  CURLcode Perform(std::chrono::milliseconds limit) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(context_.TimeLeft());
    const auto most = std::max<std::int64_t>(1, std::min(left, limit).count());
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(most));
    return ::curl_easy_perform(handle_.get());
  }

  long Status() const {
    long status = 0;
    ::curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  std::string Problem(CURLcode code) const {
    return message_[0] != '\0' ? message_ : ::curl_easy_strerror(code);
  }

 private:
  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto& transfer = *static_cast<CurlTransfer*>(self);
    return transfer.context_.ShouldStop() || (transfer.arrived_ && transfer.arrived_()) ? 1 : 0;
  }

  CurlTransfer(millrace::Context& context, CurlPool* pool)
      : pool_(pool), handle_(pool == nullptr ? NewCurlHandle() : pool->Take()), context_(context) {
    Set(CURLOPT_NOSIGNAL, 1L);    // else a time-out would interrupt the whole process
    Set(CURLOPT_QUICK_EXIT, 1L);  // else the end would wait for a look-up that hangs; it is left to itself
    Set(CURLOPT_ERRORBUFFER, message_);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &CurlTransfer::OnProgress);
    Set(CURLOPT_XFERINFODATA, this);
  }

  CurlPool* const pool_;
  CurlHandle handle_;
  millrace::Context& context_;
  std::function<bool()> arrived_;
  char message_[CURL_ERROR_SIZE] = {};
};
