#include "coordinator/alerts/notice.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "framework/base/escape.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongestLine = 300;
constexpr std::size_t kMostExamples = 5;
constexpr int kDigits = 10;  // so that keys stand in the order of their numbers

// One line of people's text, whatever a task or handler said.
std::string Line(const std::string& text) {
  std::string line = Escape(text, Backslash::Kept);
  if (line.size() <= kLongestLine) return line;
  return Shorten(line, kLongestLine) + "…";
}

std::string Headline(const Notice& notice) {
  if (notice.test) return "test of the alert " + notice.alert;
  if (!notice.firing) return notice.alert + " is over";
  return notice.alert + ": " + Line(notice.fact.what);
}

std::string WhenText(WallTime time) { return FormatTime(std::chrono::floor<std::chrono::seconds>(time)); }

std::string Body(const Notice& notice, const std::vector<std::string>& parts,
                 const std::vector<std::string>& examples) {
  std::string body = Headline(notice) + "\n";
  if (notice.test) {
    body += "Somebody has tried whether messages of this alert arrive. They do.\n";
  } else {
    body += notice.firing ? "\nIn " : "\nNow " + Line(notice.fact.what) + ". In ";
    body += Line(notice.from) + ", since " + WhenText(notice.since);
    body += notice.firing ? "\n" : " until " + WhenText(notice.at) + "\n";
  }
  const auto add = [&body](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    body += std::string("\n") + title + "\n";
    for (const std::string& line : lines) body += "  " + line + "\n";
  };
  add("What:", parts);
  add("Examples:", examples);
  return body;
}

// Whether it fires or is over stands not in it: of two that judge at once one alone has the number.
std::string KeyOf(const Notice& notice, const std::string& channel) {
  std::string number = std::to_string(notice.number);
  number.insert(0, kDigits - std::min<std::size_t>(number.size(), kDigits), '0');
  return (notice.test ? "alert-test/" + notice.alert + "/" : KeysOf(notice.alert)) + number + "/" + channel;
}

std::vector<std::string> Lines(const std::vector<std::string>& texts, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    if (lines.size() == most) break;
    lines.push_back(Line(text));
  }
  return lines;
}

}  // namespace

std::string KeysOf(const std::string& alert) { return "alert/" + alert + "/"; }

std::vector<NewTask> TasksOf(const Notice& notice, const AlertConfig& alert) {
  const std::vector<std::string> parts = Lines(notice.fact.parts, notice.fact.parts.size());
  const std::vector<std::string> examples = Lines(notice.examples, kMostExamples);
  ordered_json params{{"alert", notice.alert},
                      {"kind", WordOf(alert.kind)},
                      {"handler", alert.handler},
                      {"state", notice.test     ? "test"
                                : notice.firing ? "firing"
                                                : "over"},
                      {"text", Headline(notice)},
                      {"count", notice.fact.count},
                      {"since", FormatTime(notice.since)},
                      {"at", FormatTime(notice.at)},
                      {"from", Line(notice.from)},
                      {"what", parts},
                      {"examples", examples}};
  if (!notice.fact.names.empty()) params["names"] = notice.fact.names;
  std::vector<NewTask> tasks;
  const auto add = [&](const char* type, const std::string& channel) {
    NewTask& task = tasks.emplace_back();
    task.handler = type;
    task.params = params.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    task.biz_key = KeyOf(notice, channel);
    task.priority = 0;
  };
  if (!alert.webhook.empty()) add(kWebhookType, "webhook");
  params["subject"] = "[millrace] " + Headline(notice);
  params["body"] = Body(notice, parts, examples);
  for (const std::string& address : alert.mail) {
    params["to"] = address;
    add(kMailType, address);
  }
  return tasks;
}

std::optional<std::uint64_t> NumberOfKey(const std::string& alert, std::string_view key) {
  const std::string prefix = KeysOf(alert);
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || number == 0) return std::nullopt;
  key.remove_prefix(static_cast<std::size_t>(end - key.data()));
  return key.size() > 1 && key.starts_with('/') ? std::optional(number) : std::nullopt;
}

std::optional<NoticeParams> ParseNoticeParams(std::string_view params) {
  const auto json = nlohmann::json::parse(params, nullptr, false);
  if (!json.is_object() || !json.contains("count") || !json["count"].is_number_unsigned())
    return std::nullopt;
  NoticeParams read{json.contains("state") && json["state"] == "firing", json["count"].get<std::uint64_t>()};
  if (json.contains("names") && json["names"].is_array()) {
    for (const auto& name : json["names"]) {
      if (name.is_string()) read.names.push_back(name.get<std::string>());
    }
  }
  std::sort(read.names.begin(), read.names.end());  // whoever wrote them
  const auto text = [&json](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  read.kind = text("kind");
  read.handler = text("handler");
  const auto since = ParseTime(text("since"));
  if (since) read.since = *since;
  return read;
}

}  // namespace millrace::engine
