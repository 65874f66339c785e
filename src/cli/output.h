// What a command prints. Text that was asked for goes to stdout; progress, notes, statistics and errors go to stderr.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "hearth/error.h"

namespace hearth::cli {

bool is_terminal(int fd);

// Names in files and what models write may hold escape sequences, which would command the terminal. Here control
// characters and what is not UTF-8 appear as \x1b and the like; newlines and tabs stay.
std::string printable_text(std::string_view text);

// To stderr, printable. What cannot be written is dropped: a note is no reason to stop.
void write_note(std::string_view text);
template <class... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  write_note(fmt::format(format, std::forward<Args>(args)...));
}
// "hearth: <message>" on one line of stderr.
void report(const Error& error);

// To stdout as it is, but printable on a terminal. Whether it could be written is asked once, at the end:
// lost_output().
void write_out(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}
bool lost_output();

// A line on stderr that changes while something takes long and then goes away. Only a terminal shows it.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool shown_ = false;
};

// "1.2 GiB"
std::string bytes_text(double bytes);

}  // namespace hearth::cli
