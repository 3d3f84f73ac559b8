// Adds a reminder for each customer, due tomorrow: reminders STORE [PASSWORD_FILE]
#include <millrace/producer.h>

#include <cstdio>
#include <string>

using namespace std::chrono_literals;
namespace producer = millrace::producer;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  auto opened = producer::Producer::Open(argv[1], {.password_file = argc > 2 ? argv[2] : ""});
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  std::vector<producer::NewTask> tasks;
  for (int customer = 1; customer <= 1000; ++customer) {
    const std::string id = std::to_string(customer);
    tasks.push_back({.handler = "noop",
                     .params = R"({"customer":)" + id + "}",
                     .key = "reminder-" + id,
                     .batch = "reminders",
                     .delay = 24h,
                     .slice_key = "customer-" + id});
  }
  const auto report = opened->Submit(tasks);
  if (!report) {
    std::fprintf(stderr, "%s\n", report.error().message.c_str());
    return 1;
  }
  std::printf("%zu added, %zu there already\n", report->added, tasks.size() - report->added);
  return 0;
}
