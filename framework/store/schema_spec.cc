#include <cstdio>

#include "framework/store/schema_store.h"

namespace millrace::engine {

std::vector<TableName> TableNames(const SchemaSpec& spec) {
  if (spec.tables == 1) return {kDefaultTable};
  std::vector<TableName> names;
  for (std::uint32_t i = 0; i < spec.tables; ++i) {
    char name[24];
    std::snprintf(name, sizeof name, "tasks_%03u", i);
    names.push_back(ParseTableName(name).value());
  }
  return names;
}

Status CheckSlices(std::uint32_t slices) {
  if (slices >= 1 && slices <= kMaxSlices) return {};
  return Fail(ErrorCode::Invalid,
              std::to_string(slices) + " slices; a table takes 1 to " + std::to_string(kMaxSlices));
}

Status CheckVersion(std::uint32_t version, const std::string& where) {
  if (version == kSchemaVersion) return {};
  return Fail(ErrorCode::Invalid,
              where + ": the schema has version " + std::to_string(version) + ", this program knows " +
                  std::to_string(kSchemaVersion) + ": " +
                  (version < kSchemaVersion ? "run `millrace schema upgrade`" : "use the newer program"));
}

}  // namespace millrace::engine
