#include "cli/output.h"

#include <unistd.h>

#include <algorithm>

namespace hearth::cli {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with, 0 if it begins with none.
size_t sequence_bytes(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  bool overlong_or_beyond = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                            (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return overlong_or_beyond ? 0 : length;
}

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
    size_t length = sequence_bytes(text);
    std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
    if (length > 0 && !is_control(sequence)) {
      out += sequence;
    } else {
      for (char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

size_t utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = sequence_bytes(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
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
