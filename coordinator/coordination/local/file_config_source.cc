#include "coordinator/coordination/local/file_config_source.h"

#include <utility>

namespace millrace::engine {

FileConfigSource::FileConfigSource(Config config)
    : config_(std::make_shared<const Config>(std::move(config))) {}

}  // namespace millrace::engine
