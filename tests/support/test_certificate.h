// A certificate for one name or address, with its key, in files of its own that go with the object. It
// vouches for itself: whoever takes it for an authority trusts its server. Made by the command `openssl`.
#pragma once

#include <string>

namespace millrace::engine {

class TestCertificate {
 public:
  // `names` as subjectAltName has them. Dies with a message where it can't be made.
  explicit TestCertificate(const std::string& names = "IP:127.0.0.1");
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::string certificate() const { return folder_ + "/certificate.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }

 private:
  std::string folder_;
};

}  // namespace millrace::engine
