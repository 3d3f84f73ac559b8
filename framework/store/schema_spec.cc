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

Status CheckVersion(const SchemaState& state, const std::string& where) {
  const bool later = state.version > kSchemaVersion;
  if (state.version == kSchemaVersion && !state.half_way) return {};
  if (later && state.readable_by != 0 && state.readable_by <= kSchemaVersion) return {};
  std::string remedy = ": run `millrace schema upgrade`";
  if (later) remedy = ": use the newer program";
  if (state.half_way && !later) remedy = ", and an upgrade to it was cut short" + remedy;
  return Fail(ErrorCode::Conflict, where + ": the schema has version " + std::to_string(state.version) +
                                       ", this program knows " + std::to_string(kSchemaVersion) + remedy);
}

}  // namespace millrace::engine
