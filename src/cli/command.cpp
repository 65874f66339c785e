#include "cli/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/utf8.h"
#include "files/replacing_file.h"

namespace hearth::cli {

int exit_code(const Error& error) { return error.code == ErrorCode::kUsage ? 2 : 1; }

CLI::App* add_command(CLI::App& app, std::string name, std::string what, Body& chosen, Body body) {
  CLI::App* command = app.add_subcommand(std::move(name), std::move(what));
  command->callback([&chosen, body = std::move(body)] { chosen = body; });
  return command;
}

Result<std::string> read_text(const std::string& path) {
  constexpr size_t kMost = size_t{256} << 20;
  struct Close {
    void operator()(std::FILE* f) const {
      if (f != stdin) std::fclose(f);
    }
  };
  std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return fail(ErrorCode::kNotFound, "cannot open {}: {}", path, std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, n);
    if (text.size() > kMost) return fail(ErrorCode::kUsage, "cannot read {}: it is larger than 256 MiB", path);
  }
  if (std::ferror(file.get())) return fail(ErrorCode::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return text;
}

Result<void> check_utf8(std::string_view name, std::string_view text) {
  const size_t good = valid_utf8_prefix(text);
  if (good == text.size()) return {};
  return fail(ErrorCode::kInvalidInput, "{} is not a text: byte {} is not UTF-8", name, good);
}

Result<void> write_text(const std::string& path, std::string_view text) {
  HEARTH_ASSIGN(ReplacingFile file, ReplacingFile::create(path));
  HEARTH_TRY(file.write(text.data(), text.size()));
  return file.commit();
}

}  // namespace hearth::cli
