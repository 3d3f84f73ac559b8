#include "tests/support/test_certificate.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/support/run_process.h"

namespace millrace::engine {

TestCertificate::TestCertificate(const std::string& names) {
  char path[] = "/tmp/millrace-tls-XXXXXX";
  folder_ = mkdtemp(path);
  const auto made = testing::RunProcess(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=millrace-test "
      "-addext subjectAltName=" +
      names + " -keyout " + key() + " -out " + certificate());
  if (made.exit_code == 0) return;
  std::fprintf(stderr, "test support: no certificate: %s\n", made.output.c_str());
  std::abort();
}

TestCertificate::~TestCertificate() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace millrace::engine
