// A fresh shard in an SQLite file of its own, with clients that speak to it through SQLite's own library.
#pragma once

#include <memory>

#include "tests/contract/suite/store_fixture.h"

namespace millrace::engine {

std::unique_ptr<SqlFixture> MakeSqliteFixture(const SchemaSpec& spec);

}  // namespace millrace::engine
