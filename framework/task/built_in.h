// The task types that the program has by itself: they carry its alerts.
#pragma once

#include <string_view>

namespace millrace::engine {

// A configuration can't name them.
inline bool IsBuiltIn(std::string_view type) { return type.starts_with("millrace."); }
inline constexpr char kMailType[] = "millrace.mail";
inline constexpr char kWebhookType[] = "millrace.webhook";
inline bool CarriesAlerts(std::string_view type) { return type == kMailType || type == kWebhookType; }

}  // namespace millrace::engine
