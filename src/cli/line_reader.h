// Lines that a person types: edited, with a history, on a terminal; as they come from a pipe or a file.
#pragma once

#include <string>

struct editline;
struct history;

namespace hearth::cli {

// Ctrl-C is the business of an Interrupt, which must live as long: on a terminal it drops the line, else it ends the
// input. Other signals find the terminal as it was before.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next message: a line, with those that it continues by a \ at its end. False at the end of input.
  bool read(std::string& message);

 private:
  enum Outcome { kRead, kInterrupted, kEnd };

  Outcome read_line(std::string& line);
  Outcome edit_line(std::string& line);
  // Waits for a byte, and meanwhile does what signals want.
  Outcome read_byte(char& byte);
  Outcome handle(int signal);
  int read_char(wchar_t& c);
  // The terminal is set up for editing again after something else had it.
  void resume();
  void save_history();

  bool terminal_;
  std::string prompt_ = "> ";
  std::string history_path_;
  editline* edit_ = nullptr;
  history* history_ = nullptr;
  Outcome outcome_ = kRead;  // why read_char() failed
  std::string buffer_;       // what was read from stdin and not yet taken
  size_t taken_ = 0;
};

}  // namespace hearth::cli
