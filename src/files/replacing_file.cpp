#include "files/replacing_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace hearth {

namespace fs = std::filesystem;

Result<ReplacingFile> ReplacingFile::create(const std::string& path) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(path, error);
  if (error) target = path;
  bool replace = !fs::exists(target, error) || fs::is_regular_file(target, error);
  fs::path part;
  if (replace) part = target.string() + fmt::format(".{}.part", ::getpid());
  ReplacingFile result(path, target, part);
  result.file_.reset(replace ? std::fopen(part.c_str(), "wbx") : std::fopen(target.c_str(), "wb"));
  if (!result.file_) {
    int open_errno = errno;
    result.part_.clear();  // it is not ours
    const fs::path folder = target.parent_path();
    if (open_errno == ENOENT && !fs::exists(folder, error)) {
      return fail(ErrorCode::kIo, "cannot write {}: there is no folder {}", path, folder.string());
    }
    return fail(ErrorCode::kIo, "cannot write {}: {}", path, std::strerror(open_errno));
  }
  return result;
}

ReplacingFile::~ReplacingFile() {
  if (!file_) return;
  file_.reset();
  std::error_code error;
  if (!part_.empty()) fs::remove(part_, error);
}

Result<void> ReplacingFile::write(const void* data, size_t size_bytes) {
  if (size_bytes == 0 || std::fwrite(data, 1, size_bytes, file_.get()) == size_bytes) return {};
  return fail(ErrorCode::kIo, "cannot write {}: {}", path_, std::strerror(errno));
}

Result<void> ReplacingFile::commit() {
  std::error_code error;
  if (std::fclose(file_.release()) != 0) {
    error = std::error_code(errno, std::generic_category());
  } else if (!part_.empty()) {
    std::error_code ignored;
    fs::perms mode = fs::status(target_, ignored).permissions();
    if (!ignored && mode != fs::perms::unknown) fs::permissions(part_, mode, ignored);
    fs::rename(part_, target_, error);
  }
  if (!error) return {};
  std::error_code ignored;
  if (!part_.empty()) fs::remove(part_, ignored);
  return fail(ErrorCode::kIo, "cannot write {}: {}", path_, error.message());
}

}  // namespace hearth
