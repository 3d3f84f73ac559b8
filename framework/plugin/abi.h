// How the host reads the structs of <millrace/plugin.h> that a plugin made, whatever version of the header it
// was built with. Pure.
#pragma once

#include <millrace/plugin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

namespace millrace::engine {

// How large each was in the first version of the header: none is ever smaller.
template <class Struct>
inline constexpr std::size_t kFirstSize = 0;
template <>
inline constexpr std::size_t kFirstSize<millrace_plugin> = offsetof(millrace_plugin, handler_count) +
                                                           sizeof(millrace_plugin::handler_count);
template <>
inline constexpr std::size_t kFirstSize<millrace_handler> = offsetof(millrace_handler, close) +
                                                            sizeof(millrace_handler::close);
template <>
inline constexpr std::size_t kFirstSize<millrace_outcome> = offsetof(millrace_outcome, error_class) +
                                                            sizeof(millrace_outcome::error_class);
template <>
inline constexpr std::size_t kFirstSize<millrace_new_task> = offsetof(millrace_new_task, batch) +
                                                             sizeof(millrace_new_task::batch);

template <>
inline constexpr std::size_t kFirstSize<millrace_defaults> = offsetof(millrace_defaults, max_failures) +
                                                             sizeof(millrace_defaults::max_failures);

// These stand in arrays, so that their size is the step from one to the next: they never grow.
static_assert(sizeof(millrace_task) == offsetof(millrace_task, progress) + sizeof(millrace_text));
static_assert(sizeof(millrace_value) == offsetof(millrace_value, text) + sizeof(millrace_text));
static_assert(sizeof(millrace_text) == 2 * sizeof(void*));

// What its size covers of the members that this program knows; the others are zero, which is each one's
// default. None where there is no struct, or it is smaller than any was.
template <class Struct>
std::optional<Struct> ReadStruct(const Struct* raw) {
  static_assert(kFirstSize<Struct> > 0);
  if (raw == nullptr || raw->struct_size < kFirstSize<Struct>) return std::nullopt;
  Struct read{};
  std::memcpy(&read, raw, std::min<std::size_t>(raw->struct_size, sizeof read));
  return read;
}

}  // namespace millrace::engine
