#include "cli/output.h"

#include <unistd.h>

#include <iterator>

#include "base/utf8.h"

namespace hearth::cli {
namespace {

bool is_control(std::string_view sequence) {
  auto first = static_cast<unsigned char>(sequence[0]);
  if (first == '\n' || first == '\t') return false;
  // C0, DEL, and C1 (U+0080 to U+009F), which terminals obey too.
  return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0);
}

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

std::string printable_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char character = read_utf8(text, 0);
    std::string_view sequence = text.substr(0, character.length);
    if (character.valid && !is_control(sequence)) {
      out += sequence;
    } else {
      for (char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

void write_note(std::string_view text) {
  std::string shown = printable_text(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void report(const Error& error) {
  std::string line = error.message;
  for (size_t at = 0; (at = line.find('\n', at)) != std::string::npos; at += 2) line.replace(at, 1, "\\n");
  note("hearth: {}\n", line);
}

void write_out(std::string_view text) {
  static const bool terminal = is_terminal(STDOUT_FILENO);
  std::string shown;
  if (terminal) text = shown = printable_text(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool lost_output() { return std::fflush(stdout) != 0 || std::ferror(stdout); }

void ProgressLine::show(std::string_view text) {
  if (!is_terminal(STDERR_FILENO)) return;
  shown_ = true;
  std::fputs("\r", stderr);
  write_note(text);
  std::fputs(" ", stderr);
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, kUnits[unit]);
}

}  // namespace hearth::cli
