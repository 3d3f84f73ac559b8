#include "coordinator/coordination/local/file_config_source.h"

#include <utility>

namespace millrace {

FileConfigSource::FileConfigSource(Config config)
    : config_(std::make_shared<const Config>(std::move(config))) {}

}  // namespace millrace
