#include "coordinator/app/command_line.h"
#include "coordinator/app/last_resort.h"

int main(int argc, char** argv) {
  return millrace::engine::WithLastResort([&] { return millrace::engine::RunCommandLine(argc, argv); });
}
