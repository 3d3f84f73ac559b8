#include "coordinator/app/command_line.h"

int main(int argc, char** argv) { return millrace::RunCommandLine(argc, argv); }
