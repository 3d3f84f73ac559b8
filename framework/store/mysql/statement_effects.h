// What a handler's statement may have done to its transaction, beside what it was sent for.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/store/mysql/session.h"

namespace millrace::engine::mysql {

// False for a statement that begins like one which reads or changes rows: the servers let nothing within it
// commit. A CALL may end the transaction; one that stands behind a comment or a bracket is taken for one.
bool MayEndTransaction(std::string_view sql);

// The number of statements of this connection so far, those within procedures included, that could have
// committed: all but the few that are known not to.
Result<std::uint64_t> CountCommits(Session& session);

}  // namespace millrace::engine::mysql
