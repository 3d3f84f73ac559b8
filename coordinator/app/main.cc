#include "coordinator/app/command_line.h"
#include "coordinator/app/last_resort.h"

int main(int argc, char** argv) {
  return millrace::WithLastResort([&] { return millrace::RunCommandLine(argc, argv); });
}
