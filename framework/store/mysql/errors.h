// The one place that knows the native error codes of MySQL and MariaDB and says what they mean to a caller.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine::mysql {

// What was under way when the server or the client library reported a code.
enum class Purpose {
  Connect,
  Read,         // nothing can have been changed
  Write,        // an autocommit statement: a lost connection leaves its outcome open
  Transaction,  // a statement between BEGIN and COMMIT: a lost connection rolls it back
  Commit,       // a lost connection leaves the outcome open
};

struct NativeError {
  int code = 0;
  std::string message;
};

inline constexpr int kDuplicateEntry = 1062;
inline constexpr int kNoSuchTable = 1146;
inline constexpr int kNoPrivilege = 1227;  // one of the whole server's
inline constexpr int kNoSuchSavepoint = 1305;

// 1205, 1213 and their like: the statement had no effect because of somebody else's locks or changes.
bool IsLockConflict(int code);
// The server refused the values of a row; the connection and its session are as good as before.
bool IsDataError(int code);
// The connection must be dropped: what it was doing is no longer known, or it is gone.
bool MustDrop(int code);

// A right on one table or column is missing, which says nothing of the other tables.
bool LacksRight(int code);
// The statement was refused for what it asks of its tables, as far as can be told: those of others are not
// concerned. `code`: the server's.
bool IsOfTheTable(ErrorCode error, int code);
// It tells of this connection or statement alone: the others are as good as before.
bool IsOfThisOneAlone(int code);

// The connection is gone with whatever was under way: the server can't be asked any more.
bool IsGone(int code);

// `where` names the server and database, without user or password.
Error Translate(const NativeError& native, Purpose purpose, std::string_view where);

}  // namespace millrace::engine::mysql
