// What a model file tells of itself without being loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hearth/error.h"

namespace hearth {

struct ModelFile {
  size_t bytes = 0;      // of all its parts
  int64_t modified = 0;  // seconds since 1970, of the part that was named
  std::string architecture;
  int64_t parameters = 0;
};

// Reads the header of a GGUF file; any part of a split one will do.
Result<ModelFile> read_model_file(const std::string& path);

}  // namespace hearth
