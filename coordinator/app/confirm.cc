#include "coordinator/app/confirm.h"

#include <iostream>

#include "coordinator/app/terminal.h"

namespace millrace::engine {

Status Confirm(const std::string& question, bool yes) {
  if (yes) return {};
  if (!InputIsTerminal() || !ErrorIsTerminal()) {
    return Fail(ErrorCode::Conflict,
                "nothing was changed: there is no terminal to ask on; add --yes to go ahead");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Fail(ErrorCode::Conflict, "nothing was changed");
}

}  // namespace millrace::engine
