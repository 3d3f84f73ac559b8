#include "framework/http/tls.h"

#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>

#include "framework/http/server.h"

namespace millrace::engine {
namespace {

namespace ssl = boost::asio::ssl;

void AskForModernTls(ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
}

}  // namespace

Result<ssl::context> MakeServerTls(const TlsIdentity& identity) {
  ssl::context context(ssl::context::tls_server);
  AskForModernTls(context);
  boost::system::error_code bad;
  context.set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); },
                                bad);
  context.use_certificate_chain(boost::asio::buffer(identity.certificate), bad);
  if (bad) {
    return Fail(ErrorCode::Invalid,
                identity.certificate_name + " holds no certificate in PEM form: " + bad.message());
  }
  context.use_private_key(boost::asio::buffer(identity.key), ssl::context::pem, bad);
  if (bad || SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return Fail(ErrorCode::Invalid, identity.key_name + " holds no private key of the certificate in " +
                                        identity.certificate_name + ", in PEM form and without a passphrase");
  }
  return context;
}

Result<ssl::context> MakeClientTls(const std::string& authorities_file) {
  ssl::context context(ssl::context::tls_client);
  AskForModernTls(context);
  boost::system::error_code bad;
  context.set_verify_mode(ssl::verify_peer, bad);
  context.load_verify_file(authorities_file, bad);
  if (bad) {
    return Fail(ErrorCode::Invalid,
                authorities_file + " holds no certificates of authorities in PEM form: " + bad.message());
  }
  return context;
}

}  // namespace millrace::engine
