#include "cli/command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace hearth::cli {

int exit_code(const Error& error) { return error.code == ErrorCode::kUsage ? 2 : 1; }

CLI::App* add_command(CLI::App& app, std::string name, std::string what, int& exit_code,
                      std::function<Result<void>()> body) {
  CLI::App* command = app.add_subcommand(std::move(name), std::move(what));
  command->callback([&exit_code, body = std::move(body)] {
    if (auto ok = body(); !ok) {
      std::fflush(stdout);
      if (ok.error().code != ErrorCode::kCancelled) fmt::print(stderr, "hearth: {}\n", ok.error().message);
      exit_code = cli::exit_code(ok.error());
    }
  });
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

Result<void> write_text(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  // The file behind a link; what is no regular file (a device, a pipe) is written to, never replaced.
  fs::path target = fs::weakly_canonical(path, error);
  if (error) target = path;
  bool replace = !fs::exists(target, error) || fs::is_regular_file(target, error);
  std::string part = target.string();
  if (replace) part += fmt::format(".{}.part", ::getpid());
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(part.c_str(), replace ? "wbx" : "wb"), std::fclose);
  if (!file) return fail(ErrorCode::kIo, "cannot write {}: {}", path, std::strerror(errno));
  bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  written &= std::fclose(file.release()) == 0;
  std::error_code moved;
  int write_errno = errno;
  if (written && replace) {
    fs::perms mode = fs::status(target, error).permissions();
    if (!error && mode != fs::perms::unknown && fs::exists(target, error)) fs::permissions(part, mode, error);
    fs::rename(part, target, moved);
  }
  if (!written || moved) {
    std::string why = moved ? moved.message() : std::strerror(write_errno);
    if (replace) fs::remove(part, error);
    return fail(ErrorCode::kIo, "cannot write {}: {}", path, why);
  }
  return {};
}

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, kUnits[unit]);
}

}  // namespace hearth::cli
