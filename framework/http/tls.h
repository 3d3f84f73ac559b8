// TLS of the server and of the client that asks it: 1.2 or newer.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

struct TlsIdentity;  // server.h

// Invalid where a text is none, or the key is another certificate's. Nobody is asked for a passphrase.
Result<boost::asio::ssl::context> MakeServerTls(const TlsIdentity& identity);
// Trusts the authorities in the file alone.
Result<boost::asio::ssl::context> MakeClientTls(const std::string& authorities_file);

}  // namespace millrace::engine
