// A file that is written beside its place and takes it only when it is complete.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace hearth {

// A link stays one: the file behind it is replaced, and its permissions are kept. What is no regular file (a device, a
// pipe) is written to and never replaced.
class ReplacingFile {
 public:
  static Result<ReplacingFile> create(const std::string& path);
  ReplacingFile(ReplacingFile&&) = default;
  ReplacingFile& operator=(ReplacingFile&&) = delete;
  // Without commit() what was at the path is still there, and nothing else is.
  ~ReplacingFile();

  Result<void> write(const void* data, size_t size_bytes);
  // Nothing can be written afterwards.
  Result<void> commit();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  ReplacingFile(std::string path, std::filesystem::path target, std::filesystem::path part)
      : path_(std::move(path)), target_(std::move(target)), part_(std::move(part)) {}

  std::string path_;              // as given, for messages
  std::filesystem::path target_;  // what is replaced
  std::filesystem::path part_;    // where it is written; empty when it is not replaced
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace hearth
