// hearth completions: scripts for shells, made from the commands themselves.
#include "cli/command.h"

namespace hearth::cli {
namespace {

// Words that may follow a command: its flags, long and short.
std::string flag_words(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    for (const std::string& name : option->get_snames()) words += "-" + name + " ";
  }
  return words;
}

std::string command_words(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : app.get_subcommands({})) words += command->get_name() + " ";
  return words;
}

// What follows the words of a command; `depth` of them, `hearth` among them. A command may have commands below it.
std::string bash_cases(const CLI::App& app, int depth) {
  std::string text = fmt::format("  case ${{COMP_WORDS[{}]}} in\n", depth);
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("    {})\n    [[ $word == -* ]] && COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n",
                        command->get_name(), flag_words(*command));
    if (const std::string below = command_words(*command); !below.empty()) {
      // Where a file may stand as well, an empty word leaves files to be listed.
      text +=
          fmt::format("    ((COMP_CWORD == {})) && [[ {} ]] && COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n",
                      depth + 1, command->get_require_subcommand_min() > 0 ? "$word != -*" : "$word == [^-]*", below);
      text += bash_cases(*command, depth + 1);
    }
    text += "    ;;\n";
  }
  return text + "  esac\n";
}

std::string bash_script(const CLI::App& app) {
  return "_hearth() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]}\n"
         "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '" +
         command_words(app) + "' -- \"$word\")); return; fi\n" + bash_cases(app, 1) +
         "}\ncomplete -o default -F _hearth hearth\n";
}

std::string zsh_script(const CLI::App& app) {
  return "#compdef hearth\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
}

std::string fish_flags(const CLI::App& command, std::string_view condition) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      text += fmt::format("complete -c hearth -n '{}' -l {}\n", condition, name);
    }
  }
  return text;
}

std::string fish_script(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("complete -c hearth -n __fish_use_subcommand -f -a {} -d '{}'\n", command->get_name(),
                        command->get_description());
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", command->get_name());
    text += fish_flags(*command, seen);
    for (const CLI::App* below : command->get_subcommands({})) {
      text += fmt::format("complete -c hearth -n '{}' -f -a {} -d '{}'\n", seen, below->get_name(),
                          below->get_description());
      text += fish_flags(*below, fmt::format("{}; and __fish_seen_subcommand_from {}", seen, below->get_name()));
    }
  }
  return text;
}

}  // namespace

void add_completions(CLI::App& app, Body& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, "completions", "Print a completion script for a shell", chosen, [shell, &app]() -> Result<void> {
        print("{}", *shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
        return {};
      });
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace hearth::cli
