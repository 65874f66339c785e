// hearth launch: an agent client, set up for a server that runs here.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "cli/agent/served_model.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/launch/config_file.h"

namespace hearth::cli {
namespace {

constexpr const Client* kClients[] = {&kClaude, &kCodex, &kOpenClaw, &kOpenCode};

struct LaunchFlags {
  ServerFlags server;
  int64_t context_tokens = 0;
  bool dry_run = false;
};

// The program's place on the PATH; "" when it is on none.
std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("_-./:=@%+,", c) != nullptr; };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

void print_plan(const Launch& launch, const std::vector<std::string>& command) {
  for (const ConfigFile& file : launch.files) print("# {} would hold:\n{}\n", file.path, file.text);
  for (const auto& [name, value] : launch.environment) {
    if (value) {
      print("export {}={}\n", name, shell_word(*value));
    } else {
      print("unset {}\n", name);
    }
  }
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_word(word);
  print("{}\n", line);
}

Error replace_process(const std::string& program, const std::vector<std::string>& command, const Launch& launch) {
  for (const auto& [name, value] : launch.environment) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));  // execv changes nothing
  words.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(program.c_str(), words.data());
  return fail(ErrorCode::kIo, "cannot start {}: {}", program, std::strerror(errno));
}

Result<void> launch(const Client& client, const LaunchFlags& flags, const std::vector<std::string>& arguments) {
  HEARTH_ASSIGN(const server::HttpClient http, client_for(flags.server, {.idle_seconds = 30}));
  HEARTH_ASSIGN(const ServedModel served, ask_for_model(http, flags.server.model));
  const int64_t context = flags.context_tokens > 0 ? flags.context_tokens : served.context_tokens;
  if (context == 0) {
    return fail(ErrorCode::kUsage, "the server at {} does not say how long its context is; give it by --context",
                http.url().text());
  }
  if (context < client.least_context) {
    note(
        "hearth: warning: {} needs a context of about {} tokens, {} has {}: it may fail or forget what it is doing. "
        "`hearth serve -c {}` would give it that, where model and memory allow\n",
        client.title, client.least_context, served.id, context, client.least_context);
  }
  // Answers beyond a quarter of the context would leave too little for what they are about.
  const Endpoint endpoint = {.url = http.url().text(),
                             .api_key = flags.server.api_key,
                             .model = served.id,
                             .context_tokens = context,
                             .output_tokens = std::clamp<int64_t>(context / 4, 1, 32768)};
  HEARTH_ASSIGN(const Launch plan, client.plan(endpoint));
  std::vector<std::string> command = {std::string(client.program)};
  command.insert(command.end(), plan.arguments.begin(), plan.arguments.end());
  command.insert(command.end(), arguments.begin(), arguments.end());

  const std::string program = find_program(client.program);
  if (flags.dry_run) {
    print_plan(plan, command);
    if (program.empty()) note("hearth: note: {} is not installed; `{}` does that\n", client.title, client.install);
    return {};
  }
  if (program.empty()) {
    return fail(ErrorCode::kNotFound, "{} is not installed: there is no {} on the PATH; `{}` installs it", client.title,
                client.program, client.install);
  }
  for (const ConfigFile& file : plan.files) HEARTH_TRY(write_config(file));
  return replace_process(program, command, plan);
}

}  // namespace

void add_launch(CLI::App& app, Body& chosen, const std::vector<std::string>& client_arguments) {
  CLI::App* launch_command = app.add_subcommand("launch", "Start an agent client on a server that runs");
  launch_command->require_subcommand(1);
  for (const Client* client : kClients) {
    auto flags = std::make_shared<LaunchFlags>();
    CLI::App* command =
        add_command(*launch_command, std::string(client->name), fmt::format("Start {}", client->title), chosen,
                    [=, &client_arguments] { return launch(*client, *flags, client_arguments); });
    command->footer("What follows -- is for the client: hearth launch " + std::string(client->name) + " -- --help");
    add_server_flags(*command, flags->server);
    command->add_option("-c,--context", flags->context_tokens, "Tokens of the context, if the server does not say")
        ->transform(whole_number<int64_t>(1, int64_t{1} << 30));
    command->add_flag("--dry-run", flags->dry_run, "Print what would be written and run, and do nothing");
  }
}

}  // namespace hearth::cli
