#include <cstdio>

#include "framework/store/schema_store.h"

namespace millrace {

std::vector<std::string> TableNames(const SchemaSpec& spec) {
  if (spec.tables == 1) return {"tasks"};
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < spec.tables; ++i) {
    char name[24];
    std::snprintf(name, sizeof name, "tasks_%03u", i);
    names.emplace_back(name);
  }
  return names;
}

}  // namespace millrace
