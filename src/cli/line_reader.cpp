#include "cli/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <string_view>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/settings.h"

namespace hearth::cli {
namespace {

// The editor counts characters as the locale has them. Models speak UTF-8 whatever the locale, so another encoding
// would lose every character that is not ASCII.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

LineReader* reader_of(EditLine* edit) {
  void* reader = nullptr;
  el_get(edit, EL_CLIENTDATA, &reader);
  return static_cast<LineReader*>(reader);
}

}  // namespace

LineReader::LineReader() : terminal_(is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO)) {
  if (!terminal_) return;
  use_utf8();
  edit_ = el_init("hearth", stdin, stderr, stderr);
  history_ = history_init();
  HistEvent event;
  history(history_, &event, H_SETSIZE, 1000);
  history(history_, &event, H_SETUNIQUE, 1);
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(
      edit_, EL_PROMPT, +[](EditLine* edit) { return reader_of(edit)->prompt_.data(); });
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_HIST, history, history_);
  // Not the editor's own reading and EL_SIGNAL: those sleep in read(), do not notice a signal that another thread got,
  // and send every signal on to the whole process group.
  el_set(
      edit_, EL_GETCFN, +[](EditLine* edit, wchar_t* c) { return reader_of(edit)->read_char(*c); });
  el_source(edit_, nullptr);
  if (auto folder = user_folder("STATE")) {
    history_path_ = *folder + "/chat_history";
    history(history_, &event, H_LOAD, history_path_.c_str());
  }
}

LineReader::~LineReader() {
  if (!terminal_) return;
  save_history();
  history_end(history_);
  el_end(edit_);
}

bool LineReader::read(std::string& message) {
  message.clear();
  prompt_ = "> ";
  std::string line;
  while (true) {
    Outcome outcome = terminal_ ? edit_line(line) : read_line(line);
    if (outcome == kEnd) return !message.empty();
    if (outcome == kInterrupted) {
      message.clear();
      prompt_ = "> ";
      continue;
    }
    bool more = line.ends_with('\\');
    if (more) line.pop_back();
    message += line;
    if (!more) break;
    message += '\n';
    prompt_ = ". ";
  }
  if (terminal_ && !message.empty()) {
    HistEvent event;
    history(history_, &event, H_ENTER, message.c_str());
  }
  return true;
}

LineReader::Outcome LineReader::read_line(std::string& line) {
  line.clear();
  while (true) {
    char byte = 0;
    Outcome outcome = read_byte(byte);
    if (outcome == kInterrupted) return kEnd;
    if (outcome == kEnd) return line.empty() ? kEnd : kRead;
    if (byte == '\n') return kRead;
    line += byte;
  }
}

LineReader::Outcome LineReader::edit_line(std::string& line) {
  Signals signals({SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGQUIT});
  outcome_ = kEnd;
  int count = 0;
  const char* text = el_gets(edit_, &count);
  if (!text || count <= 0) {
    bool interrupted = outcome_ == kInterrupted;
    std::fputs(interrupted ? "^C\n" : "\n", stderr);
    return interrupted ? kInterrupted : kEnd;
  }
  line.assign(text, static_cast<size_t>(count));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return kRead;
}

LineReader::Outcome LineReader::read_byte(char& byte) {
  while (taken_ == buffer_.size()) {
    pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = Signals::fd(), .events = POLLIN}};
    if (::poll(waits, std::size(waits), -1) < 0 && errno != EINTR) return kEnd;
    if (int signal = Signals::take()) {
      if (handle(signal) == kInterrupted) return kInterrupted;
      continue;
    }
    if (waits[0].revents == 0) continue;
    buffer_.resize(4096);
    ssize_t count = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
    buffer_.resize(count > 0 ? static_cast<size_t>(count) : 0);
    taken_ = 0;
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return kEnd;
  }
  byte = buffer_[taken_++];
  return kRead;
}

LineReader::Outcome LineReader::handle(int signal) {
  switch (signal) {
    case SIGINT:
      return kInterrupted;
    case SIGWINCH:
      el_resize(edit_);
      break;
    case SIGCONT:
      resume();
      break;
    default:  // stops or ends the process
      el_set(edit_, EL_PREP_TERM, 0);
      if (signal != SIGTSTP) save_history();
      raise_default(signal);
      resume();
  }
  return kRead;
}

// The editor's reading function: 1 and a character, 0 at the end of input, -1 to give the line up.
int LineReader::read_char(wchar_t& c) {
  std::mbstate_t state{};
  bool begins = true;
  char byte = 0;
  while ((outcome_ = read_byte(byte)) == kRead) {
    size_t used = std::mbrtowc(&c, &byte, 1, &state);
    // A byte that does not continue what came before begins anew; one that begins nothing is dropped.
    if (used == static_cast<size_t>(-1)) {
      state = {};
      if (!begins) used = std::mbrtowc(&c, &byte, 1, &state);
      if (used == static_cast<size_t>(-1)) state = {};
    }
    if (used <= 1) return 1;
    begins = used != static_cast<size_t>(-2);
  }
  errno = EINTR;
  return outcome_ == kEnd ? 0 : -1;
}

void LineReader::resume() {
  el_set(edit_, EL_PREP_TERM, 0);  // the editor believes that the terminal is still as it left it
  el_set(edit_, EL_PREP_TERM, 1);
  std::fputc('\r', stderr);
  el_set(edit_, EL_REFRESH);
}

void LineReader::save_history() {
  HistEvent event;
  if (!history_path_.empty()) history(history_, &event, H_SAVE, history_path_.c_str());
}

}  // namespace hearth::cli
