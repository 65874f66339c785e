#include "hearth/model_file.h"

#include <chrono>
#include <filesystem>

#include "base/result.h"
#include "files/gguf.h"

namespace hearth {

Result<ModelFile> read_model_file(const std::string& path) {
  HEARTH_ASSIGN(const Catalog catalog, open_gguf(path));
  HEARTH_ASSIGN(const std::string_view architecture, catalog.metadata().string("general.architecture"));
  ModelFile file{.architecture = std::string(architecture)};
  std::error_code error;  // files that are open have a size
  for (const std::string& part : catalog.paths()) file.bytes += std::filesystem::file_size(part, error);
  const auto modified = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path, error));
  file.modified = std::chrono::floor<std::chrono::seconds>(modified).time_since_epoch().count();
  for (const TensorEntry& tensor : catalog.tensors()) file.parameters += tensor.elements();
  return file;
}

}  // namespace hearth
