#include "cli/launch/config_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "cli/command.h"

namespace hearth::cli {

namespace fs = std::filesystem;
using server::Json;

std::string folder_or(const char* variable, std::string_view below_home) {
  if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  const char* home = std::getenv("HOME");
  return fmt::format("{}/{}", home == nullptr ? "" : home, below_home);
}

Result<std::string> text_if_any(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) return fail(ErrorCode::kIo, "cannot look at {}: {}", path, error.message());
    return std::string();
  }
  return read_text(path);
}

Result<JsonConfig> JsonConfig::open(const std::string& path, const Json& addition) {
  JsonConfig config;
  config.path_ = path;
  HEARTH_ASSIGN(std::string text, text_if_any(path));
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    config.root = Json::object();
    return config;
  }
  server::Answer<Json> json = server::parse_json(text);
  if (!json) {
    const bool comments = !Json::accept(text) && Json::accept(text, /*ignore_comments=*/true);
    return fail(ErrorCode::kUnsupported,
                "{} {}; it was left as it is. Move it away and try again, or add this to it by hand: {}", path,
                comments ? "has comments, which would be lost" : "is not plain JSON, an object",
                server::dump(addition));
  }
  config.root = *std::move(json);
  // The first line that is indented shows how.
  if (const size_t line = text.find("\n "); line != std::string::npos) {
    config.indent_ = static_cast<int>(std::min<size_t>(text.find_first_not_of(' ', line + 1) - line - 1, 8));
  } else if (text.find("\n\t") != std::string::npos) {
    config.indent_ = 1;
    config.indent_char_ = '\t';
  }
  return config;
}

Result<Json*> JsonConfig::at(std::initializer_list<std::string_view> names) {
  Json* here = &root;
  std::string way;
  for (const std::string_view name : names) {
    if (here->is_null()) *here = Json::object();
    if (!here->is_object()) {
      return fail(ErrorCode::kUnsupported,
                  "{}: \"{}\" is no object, so nothing can be added to it; it was left as it is", path_, way);
    }
    way += (way.empty() ? "" : ".") + std::string(name);
    here = &(*here)[std::string(name)];
  }
  return here;
}

ConfigFile JsonConfig::file() const {
  return {.path = path_, .text = root.dump(indent_, indent_char_, false, Json::error_handler_t::replace) + "\n"};
}

Result<std::string> with_block(const std::string& path, std::string_view text, std::string_view block) {
  constexpr std::string_view kBegin = "# >>> hearth launch: this block is replaced at each launch\n";
  constexpr std::string_view kEnd = "# <<< hearth launch\n";
  std::string result(text);
  const size_t begin = result.find(kBegin), end = result.find(kEnd);
  if ((begin == std::string::npos) != (end == std::string::npos) || (begin != std::string::npos && end < begin)) {
    return fail(ErrorCode::kUnsupported,
                "{}: the marks of the block that `hearth launch` writes are damaged; remove what is left of it and try "
                "again",
                path);
  }
  if (begin != std::string::npos) result.erase(begin, end + kEnd.size() - begin);
  return fmt::format("{}{}{}{}", kBegin, block, kEnd, result);
}

std::string toml_string(std::string_view text) { return server::dump(Json(std::string(text))); }

namespace {

// Beside the first.
constexpr int kMostBackups = 3;

Result<void> keep_backup(const std::string& path, const std::string& text) {
  const std::string first = path + ".bak-hearth";
  const auto numbered = [&](int n) { return fmt::format("{}.{}", first, n); };
  std::error_code error;
  const bool more = fs::exists(first, error);
  const std::string latest = fs::exists(numbered(1), error) ? numbered(1) : first;
  HEARTH_ASSIGN(const std::string kept, text_if_any(latest));
  if (more && kept == text) return {};
  for (int n = kMostBackups; more && n > 1; --n) {
    if (fs::exists(numbered(n - 1), error)) fs::rename(numbered(n - 1), numbered(n), error);
    if (error) return fail(ErrorCode::kIo, "cannot rename {}: {}", numbered(n - 1), error.message());
  }
  const std::string backup = more ? numbered(1) : first;
  fs::copy_file(path, backup, fs::copy_options::overwrite_existing, error);
  if (error) return fail(ErrorCode::kIo, "cannot keep {} as {}: {}", path, backup, error.message());
  note("{} as it was is now {}\n", path, backup);
  return {};
}

}  // namespace

Result<void> write_config(const ConfigFile& file) {
  const fs::path path(file.path);
  std::error_code error;
  const bool exists = fs::exists(path, error);
  HEARTH_ASSIGN(const std::string before, text_if_any(file.path));
  if (exists && before == file.text) return {};
  if (exists) {
    HEARTH_TRY(keep_backup(file.path, before));
  } else {
    fs::create_directories(path.parent_path(), error);
    if (error) return fail(ErrorCode::kIo, "cannot make the folder of {}: {}", file.path, error.message());
  }
  // A new file may hold a key: nobody else is to read it.
  const mode_t mask = exists ? 0 : ::umask(0077);
  const Result<void> written = write_text(file.path, file.text);
  if (!exists) ::umask(mask);
  if (!written) return written;
  note("{} {}\n", exists ? "Changed" : "Wrote", file.path);
  return {};
}

}  // namespace hearth::cli
