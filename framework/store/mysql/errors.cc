#include "framework/store/mysql/errors.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine::mysql {
namespace {

template <std::size_t N>
bool IsOneOf(int code, const int (&codes)[N]) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// Somebody else's lock, or his change, which a group of servers (3101) or a snapshot (1020) had first.
constexpr int kConflict[] = {1205, 1213, 1020, 3101, 3572};
// No connection could be made: socket, host, name.
constexpr int kAway[] = {2002, 2003, 2005, 1040, 1203, 1226, 1129};
// The client library's word for all that goes wrong with TLS, a connection that was cut among it.
constexpr int kTls = 2026;
// The connection went while something was under way: gone, lost, killed, closed for its silence, packets out
// of step.
constexpr int kLost[] = {2006, 2012, 2013, 2014, kTls, 2027, 2055, 1927,
                         1152, 1158, 1159, 1160, 1161, 1184, 4031};
// The server takes no writes for now (read-only, or a Galera node without its cluster); not even a COMMIT of
// any has an effect.
constexpr int kRefusesWrites[] = {1047, 1290, 1792, 1836};
// The server refuses everything for now, or its group does (3100), or the table's description was changed
// (1412). The statement had no effect.
constexpr int kRefusesForNow[] = {1053, 1077, 1317, 1028, 1021, 1114, 1206, 1412, 1637, 1969, 3024, 3100};
// The server does not know this user, or does not let it do this: nothing that a row could be blamed for.
constexpr int kDenied[] = {1044, 1045, 1049, 1130, 1142, 1143, 1698, 1862, 3118, 4151};
constexpr int kData[] = {1048, 1062, 1264, 1265, 1292, 1300, 1364, 1366, 1367, 1406, 1411, 1416, 1451,
                         1452, 1644, 1690, 3140, 3141, 3156, 3819, 3854, 4025, 4038, 1153, 1301, 3903};

bool IsLost(int code) { return IsOneOf(code, kLost); }

struct Remedy {
  int code;
  const char* text;
};
constexpr Remedy kRemedies[] = {
    {1044, "the user may not use this database: GRANT it the rights on the database"},
    {1045,
     "user or password are wrong: check the user in the store URL and the password file that "
     "MILLRACE_PASSWORD_FILE names"},
    {1049, "there is no such database: create it, or correct the name in the store URL"},
    {1130, "the server takes no connections from this host: GRANT the user for this host"},
    {1142, "the user lacks a right: GRANT it SELECT, INSERT, UPDATE and DELETE on the database"},
    {1143, "the user lacks a right on a column: GRANT it SELECT, INSERT, UPDATE and DELETE on the database"},
    {1698,
     "the account takes no password, as one of the unix socket does: give it one by ALTER USER, or name "
     "another user in the store URL"},
    {1862, "the account's password has expired: give it a new one by ALTER USER, and the password file, too"},
    {3118, "the account is locked: unlock it by ALTER USER and ACCOUNT UNLOCK"},
    {4151, "the account is locked: unlock it by ALTER USER and ACCOUNT UNLOCK"},
    {1146,
     "a table is missing: if it is one of Millrace's, run `millrace schema apply`, or `millrace schema "
     "upgrade` where the schema is older than this program"},
    {1054,
     "a column is missing: if it is one of Millrace's, run `millrace schema upgrade`, then `millrace schema "
     "check`"},
    {1932, "a table is damaged: run `millrace schema check`"},
    {kTls,
     "the verified TLS connection was refused: check tls_ca in the store URL and the server's certificate"},
    {2002, "the server can't be reached: start it, or correct host and port in the store URL"},
    {2003, "the server can't be reached: start it, or correct host and port in the store URL"},
    {2005, "the host has no address: correct it in the store URL, or name it in DNS"},
    {1040, "the server has too many connections: raise max_connections or run fewer workers"},
    {1203, "the account has too many connections: raise max_user_connections or run fewer workers"},
    {1226,
     "the account has used up a limit of its own, MAX_USER_CONNECTIONS for example: ALTER USER raises it"},
    {1290, "the server is read-only for now"},
    {1792, "the session is read-only for now"},
    {1836, "the server is read-only for now"},
};

ErrorCode LostCode(Purpose purpose) {
  return purpose == Purpose::Write || purpose == Purpose::Commit ? ErrorCode::Unknown
                                                                 : ErrorCode::Unavailable;
}

ErrorCode CodeOf(int code, Purpose purpose) {
  if (IsLockConflict(code)) return ErrorCode::Conflict;
  if (IsOneOf(code, kAway) || IsOneOf(code, kRefusesWrites)) return ErrorCode::Unavailable;
  if (IsOneOf(code, kDenied) || (code == kTls && purpose == Purpose::Connect)) return ErrorCode::Denied;
  if (IsLost(code)) return LostCode(purpose);
  // A COMMIT that reports a shutdown or an interruption may have been carried out all the same.
  if (IsOneOf(code, kRefusesForNow))
    return purpose == Purpose::Commit ? ErrorCode::Unknown : ErrorCode::Unavailable;
  if (IsDataError(code)) return ErrorCode::Invalid;
  if (purpose == Purpose::Connect && code >= 2000) return ErrorCode::Unavailable;
  // The client library reports trouble of its own, or none at all: the outcome is as open as with a lost
  // line.
  if (code == 0 || code >= 2000) {
    if (code < 3000) return purpose == Purpose::Read ? ErrorCode::Internal : LostCode(purpose);
  }
  // Nobody knows whether a COMMIT with an error of its own has had an effect: reading back tells.
  return purpose == Purpose::Commit ? ErrorCode::Unknown : ErrorCode::Internal;
}

// A handshake that a server did not see to its end, since it went away: nothing is wrong with its
// certificate.
bool IsCutShort(const std::string& message) {
  constexpr const char* kWays[] = {"reset by peer", "Broken pipe", "timed out", "unexpected eof"};
  return std::ranges::any_of(kWays, [&](const char* way) { return message.find(way) != std::string::npos; });
}

}  // namespace

bool IsLockConflict(int code) { return IsOneOf(code, kConflict); }
bool IsDataError(int code) { return IsOneOf(code, kData); }
bool MustDrop(int code) { return code != 1205 && code != 1213 && !(IsDataError(code) && code != 1153); }

bool LacksRight(int code) { return code == 1142 || code == 1143; }
bool IsOfTheTable(ErrorCode error, int code) {
  return error == ErrorCode::Conflict || error == ErrorCode::Internal ||
         (error == ErrorCode::Denied && LacksRight(code));
}
bool IsOfThisOneAlone(int code) {
  return code == 1040 || code == 1203 || code == 1226 || code == 1317 || code == 1969 || code == 3024;
}

bool IsGone(int code) { return IsLost(code) || code == 0 || (code >= 2000 && code < 3000); }

Error Translate(const NativeError& native, Purpose purpose, std::string_view where) {
  Error error{CodeOf(native.code, purpose), {}};
  if (native.code == kTls && IsCutShort(native.message) && purpose == Purpose::Connect)
    error.code = ErrorCode::Unavailable;
  const auto remedy = std::ranges::find(kRemedies, native.code, &Remedy::code);
  const bool cut = native.code == kTls && error.code != ErrorCode::Denied;
  error.message = std::string(where) + ": ";
  if (remedy != std::end(kRemedies) && !cut) {
    error.message += std::string(remedy->text) + " (";
  } else if (error.code == ErrorCode::Unknown) {
    error.message += "the connection was lost under a write, which may or may not have happened (";
  } else if (error.code == ErrorCode::Unavailable) {
    error.message += "the server is away or refuses for now (";
  } else if (error.code == ErrorCode::Conflict) {
    error.message += "somebody else holds a lock (";
  } else if (error.code == ErrorCode::Invalid) {
    error.message += "the database refused the data (";
  } else {
    error.message += "the database refused the statement (";
  }
  error.message += "error " + std::to_string(native.code) + ": " + native.message + ")";
  return error;
}

}  // namespace millrace::engine::mysql
