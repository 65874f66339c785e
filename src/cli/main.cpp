// hearth: runs the language model you want on the machine you have.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "hearth/version.h"

namespace hearth::cli {
namespace {

// A stream that the caller closed must not become the next file that is opened. Output that was asked for is missed by
// lost_output(): stdout cannot be written then.
void open_missing_streams() {
  for (auto [fd, mode] : {std::pair(STDIN_FILENO, O_RDONLY), {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}) {
    if (::fcntl(fd, F_GETFD) == -1) [[maybe_unused]]
      int opened = ::open("/dev/null", mode);  // takes the lowest number
  }
}

// Insertions, deletions and replacements of a character between two words.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

// "; did you mean --prompt?" when one of the words is near to what was typed, else nothing.
std::string suggestion(std::string_view typed, const std::vector<std::string>& words) {
  std::string best;
  size_t least = std::min<size_t>(typed.size() / 3, 3) + 1;  // one typo in a short word, a few in a long one
  for (const std::string& word : words) {
    size_t distance = word.starts_with(typed) && typed.size() > 3 ? 1 : edit_distance(typed, word);
    if (distance < least) least = distance, best = word;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The command that was typed last: `hearth`, `hearth run`, `hearth eval kl`.
CLI::App& deepest_command(CLI::App& app, std::string& words) {
  CLI::App* command = &app;
  words = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    words += " " + command->get_name();
  }
  return *command;
}

// What is wrong with the command line.
std::string complaint(const CLI::App& command, const std::string& words, const CLI::ParseError& error) {
  const bool launches = words.starts_with("hearth launch ");
  std::vector<std::string> extras = command.remaining();
  std::vector<std::string> commands = command_names(command);
  bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!extras.empty() && (missing || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)) {
    std::string extra = extras.front().substr(0, extras.front().find('='));
    if (extra.starts_with('-')) {
      std::string near = suggestion(extra, flag_names(command));
      if (near.empty() && launches) near = "; flags of the client follow --";
      return fmt::format("there is no flag {}{}", extra, near);
    }
    if (command.get_require_subcommand_min() > 0) {
      const std::string near = suggestion(extra, commands);
      return fmt::format("there is no command {}{}", extra,
                         near.empty() ? fmt::format("; there are {}", fmt::join(commands, ", ")) : near);
    }
    if (!missing && launches) {
      return fmt::format("{} is one argument too many; what is for the client follows --: {} -- {}", extras.front(),
                         words, fmt::join(extras, " "));
    }
    if (!missing) return fmt::format("{} is one argument too many", extras.front());
  }
  if (missing && !commands.empty()) return fmt::format("a command is missing: {}", fmt::join(commands, ", "));
  return error.what();
}

// "=[]" in the help of a list says nothing.
void hide_empty_defaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_default_str() == "[]") option->default_str("");
  }
  for (CLI::App* command : app.get_subcommands({})) hide_empty_defaults(*command);
}

int fail_with(const Error& error) {
  report(error);
  return exit_code(error);
}

int run(int argc, char** argv) {
  CLI::App app("Runs the language model you want on the machine you have.", "hearth");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();  // --help shows them
  app.set_version_flag("--version", HEARTH_VERSION);
  app.footer(
      "Every flag of a command can be set by HEARTH_<NAME> in the environment or by name = value in\n"
      "$XDG_CONFIG_HOME/hearth/config; flags win over the environment, the environment over the file.\n"
      "`hearth COMMAND --help` lists a command's flags.");
  // What `launch` passes on must not be read as flags here, nor taken apart: CLI11 splits "[a,b]".
  std::vector<std::string> client_arguments;
  if (argc > 1 && std::string_view(argv[1]) == "launch") {
    char** const mark = std::find(argv + 2, argv + argc, std::string_view("--"));
    if (mark != argv + argc) client_arguments.assign(mark + 1, argv + argc);
    argc = static_cast<int>(mark - argv);
  }
  Body chosen;
  add_chat(app, chosen);
  add_run(app, chosen);
  add_serve(app, chosen);
  add_launch(app, chosen, client_arguments);
  add_inspect(app, chosen);
  add_tokenize(app, chosen);
  add_render(app, chosen);
  add_bench(app, chosen);
  add_eval(app, chosen);
  add_synth(app, chosen);
  add_doctor(app, chosen);
  add_completions(app, chosen);
  add_version(app, chosen);
  hide_empty_defaults(app);

  std::string words;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const CLI::App& command = deepest_command(app, words);
    return fail_with(fail(ErrorCode::kUsage, "{}; see `{} --help`", complaint(command, words, error), words));
  }
  if (auto ok = apply_settings(app, deepest_command(app, words)); !ok) return fail_with(ok.error());

  int code = 0;
  if (auto ok = chosen(); !ok) {
    std::fflush(stdout);
    code = exit_code(ok.error());
    if (ok.error().code != ErrorCode::kCancelled) report(ok.error());
  }
  // Output that was lost is a failure, even when the command itself went well.
  if (lost_output()) {
    report(fail(ErrorCode::kIo, "cannot write the output: the other end is full or closed"));
    if (code == 0) code = 1;
  }
  return code;
}

}  // namespace
}  // namespace hearth::cli

int main(int argc, char** argv) {
  hearth::exit_when_files_shrink();
  hearth::cli::open_missing_streams();
  try {
    return hearth::cli::run(argc, argv);
  } catch (const std::exception& error) {
    hearth::cli::report(hearth::fail(hearth::ErrorCode::kInternal, "{}", error.what()));
    return 1;
  }
}
