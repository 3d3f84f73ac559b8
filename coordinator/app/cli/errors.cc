#include "coordinator/app/cli/errors.h"

#include <exception>
#include <new>
#include <string>

#include "coordinator/app/cli/terminal.h"

namespace millrace::engine {
namespace {

int Ended(const std::string& why) {
  PrintError(why);
  return static_cast<int>(ExitCode::SomethingFailed);
}

}  // namespace

ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::Invalid:
    case ErrorCode::Denied:
      return ExitCode::Usage;
    case ErrorCode::Unavailable:
    case ErrorCode::Unknown:
      return ExitCode::Unreachable;
    case ErrorCode::Conflict:
      return ExitCode::Refused;
    case ErrorCode::NotFound:
    case ErrorCode::Cancelled:
    case ErrorCode::Internal:
      break;
  }
  return ExitCode::SomethingFailed;
}

int ReportExceptions(const std::function<int()>& command) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return Ended("out of memory; give it more, or less to do at once");
  } catch (const std::exception& defect) {
    return Ended(std::string("millrace has a defect here, please report it with the command: ") +
                 defect.what());
  } catch (...) {
    return Ended("millrace has a defect here, please report it with the command: an unknown exception");
  }
}

}  // namespace millrace::engine
