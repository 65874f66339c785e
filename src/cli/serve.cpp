// hearth serve: models over HTTP.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/service.h"
#include "files/replacing_file.h"
#include "server/protocol.h"
#include "server/watchdog.h"

namespace hearth::cli {
namespace {

struct ServeFlags {
  ModelFlags model;                // its path is that of the default model
  std::vector<std::string> more;   // paths of further models
  std::string folder;              // further ones
  std::vector<std::string> names;  // NAME or NAME=ID
  std::optional<double> idle_unload;
  server::ServerOptions server;
  int64_t queue = 64;
  std::optional<bool> check;
  std::string cache_file;
  double grace = 10;
};

// Waits for a signal or for the time to pass; 0 when it passed.
int wait_for_signal(double seconds) {
  pollfd wait{.fd = Signals::fd(), .events = POLLIN, .revents = 0};
  ::poll(&wait, 1, static_cast<int>(seconds * 1000));
  return Signals::take();
}

// Shows how loading goes until it is done; false when a signal came first.
Result<bool> wait_until_ready(const server::Models& models) {
  ProgressLine progress;
  while (true) {
    server::Models::State state = models.state("");
    if (state.loads > 0) return true;  // it may be unloaded by now
    if (state.failure) return *std::move(state.failure);
    if (wait_for_signal(0.1) != 0) return false;
    progress.show(fmt::format("Loading {:.0f} %", 100 * state.progress));
  }
}

// The GGUF files of a folder by name: of split ones the first part, and no projectors, which are no models.
Result<std::vector<std::string>> models_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t part = name.rfind("-of-");
    const bool later_part = part != std::string::npos && part >= 6 && name[part - 6] == '-' &&
                            name.size() == part + 14 && name.compare(part - 5, 5, "00001") != 0;
    if (it->path().extension() != ".gguf" || later_part || name.starts_with("mmproj")) continue;
    if (std::error_code ignored; it->is_regular_file(ignored)) paths.push_back(it->path());
  }
  if (error) return fail(ErrorCode::kIo, "cannot read the folder {}: {}", folder, error.message());
  if (paths.empty()) return fail(ErrorCode::kNotFound, "there is no .gguf file in the folder {}", folder);
  std::ranges::sort(paths);
  return paths;
}

// The default first, none twice.
Result<std::vector<std::string>> model_paths(const ServeFlags& flags) {
  std::vector<std::string> wanted = flags.more, paths;
  if (!flags.model.path.empty()) wanted.insert(wanted.begin(), flags.model.path);
  if (!flags.folder.empty()) {
    HEARTH_ASSIGN(const std::vector<std::string> found, models_in(flags.folder));
    wanted.insert(wanted.end(), found.begin(), found.end());
  }
  if (wanted.empty()) {
    HEARTH_ASSIGN(wanted.emplace_back(), model_in_the_box());
  }
  std::vector<std::filesystem::path> seen;
  for (std::string& path : wanted) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error).lexically_normal();
    if (std::ranges::find(seen, absolute) != seen.end()) continue;
    seen.push_back(absolute);
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::vector<server::LoadOptions>> load_options(const ServeFlags& flags) {
  HEARTH_ASSIGN(const std::vector<std::string> paths, model_paths(flags));
  if (paths.size() > 1 && !flags.cache_file.empty()) {
    return fail(ErrorCode::kUsage, "--prompt-cache keeps the cache of one model, and there are {}", paths.size());
  }
  if (paths.size() > 1 && !flags.model.chat_template_file.empty()) {
    return fail(ErrorCode::kUsage, "--chat-template is that of one model, and there are {}", paths.size());
  }
  std::vector<server::LoadOptions> models;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return fail(ErrorCode::kNotFound, "cannot serve {}: there is no such file", path);
    }
    models.push_back({.path = path,
                      .model = flags.model.model,
                      .engine = flags.model.engine,
                      .queue = flags.queue,
                      .check = flags.check,
                      .cache_file = flags.cache_file});
  }
  for (const std::string& name : flags.names) {
    if (name.empty() || name.starts_with('=') || name.ends_with('=')) {
      return fail(ErrorCode::kUsage, "--alias: expected NAME or NAME=ID, found \"{}\"", name);
    }
    if (name.find('=') != std::string::npos) continue;
    if (!models.front().id.empty()) {
      return fail(ErrorCode::kUsage, "--alias {}: the first model is {} already; NAME=ID gives a further name", name,
                  models.front().id);
    }
    models.front().id = name;
  }
  return models;
}

Result<void> add_aliases(const ServeFlags& flags, server::Models& models) {
  for (const std::string& name : flags.names) {
    const size_t equals = name.find('=');
    if (equals != std::string::npos) HEARTH_TRY(models.add_alias(name.substr(0, equals), name.substr(equals + 1)));
  }
  return {};
}

// What runs now, once the default model is loaded.
void announce(const server::Models& models) {
  const server::Models::State first = models.state("");
  if (first.model) {
    for (const std::string& text : first.model->notes) note("hearth: note: {}\n", text);
  }
  note_long_context(*first.info);
  note("{} on {}, context {} tokens\n", first.id, first.info->device, first.info->sequence_tokens);
  std::string others;
  for (const server::Models::State& state : models.states()) {
    if (state.id != first.id) others += (others.empty() ? "" : ", ") + state.id;
  }
  if (!others.empty()) note("Loaded when they are asked for: {}\n", others);
}

// Models that nobody used for so long go when there are several; 0: none does.
constexpr double kIdleUnloadSeconds = 900;

// Steps that take longer are as good as none: most clients have given up.
constexpr double kStallSeconds = 120;
// An answer that is cut off ends within a step. An engine that gets nothing done for this long then, or for --grace, or
// for twice its longest step if that is longer, is not waited for.
constexpr double kLongestLastStep = 5;

// Waits until no engine has anything to do; returns the id of a model whose engine hangs instead: it has stalled, or
// got nothing done for so long.
std::optional<std::string> hanging_model(const server::Models& models, double seconds) {
  while (true) {
    bool at_rest = true;
    for (const server::Models::State& state : models.states()) {
      const EngineStats stats = state.model ? state.model->engine->stats() : EngineStats();
      if (stats.stalled || stats.quiet_seconds >= std::max(seconds, 2 * stats.longest_step_seconds)) return state.id;
      at_rest = at_rest && stats.quiet_seconds == 0;
    }
    if (at_rest) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A thread that hangs cannot be waited for.
[[noreturn]] void leave(const std::string& hanging) {
  note("hearth: error: {} hangs and is not waited for; what it had cached is not kept\n", hanging);
  std::_Exit(1);
}

// A cache that could not be kept at the end is known at the start.
Result<void> check_cache_file(const std::string& path) {
  if (path.empty()) return {};
  auto file = ReplacingFile::create(path);  // goes away again
  if (!file) return std::move(file).error().with_context("--prompt-cache");
  return {};
}

Result<void> serve(ServeFlags& flags) {
  HEARTH_TRY(check_cache_file(flags.cache_file));
  if (std::ranges::find(flags.server.api_keys, "") != flags.server.api_keys.end()) {
    return fail(ErrorCode::kUsage, "--api-key is empty; give a key, or leave it out to serve without one");
  }
  HEARTH_ASSIGN(flags.model.model.chat_template, read_chat_template(flags.model.chat_template_file));
  HEARTH_ASSIGN(std::vector<server::LoadOptions> options, load_options(flags));
  const Signals signals({SIGINT, SIGTERM}, Signals::kOnce);  // the second one ends the program at once
  const double idle_unload = flags.idle_unload.value_or(options.size() > 1 ? kIdleUnloadSeconds : 0);
  server::Models models(std::move(options), {.idle_unload_seconds = idle_unload, .notice = [](const std::string& text) {
                                               note("hearth: note: {}\n", text);
                                             }});
  HEARTH_TRY(add_aliases(flags, models));
  server::Server server(flags.server);
  server::add_protocols(server, models);
  HEARTH_TRY(server.start());
  if (!server.is_loopback() && flags.server.api_keys.empty()) {
    note("hearth: warning: {} can be reached by other machines, and no --api-key is set: everyone may use the model\n",
         server.url());
  }
  models.start_loading();
  Result<bool> ready = wait_until_ready(models);
  if (!ready) return std::move(ready).error();
  if (!*ready) std::_Exit(0);  // nothing is lost, and loading cannot be stopped
  announce(models);
  note("Listening on {}\n", server.url());
  notify_service("READY=1");

  server::Watchdog watchdog(models, [](const std::string& text) { note("hearth: warning: {}\n", text); });
  do {
    if (watchdog.look()) notify_service("WATCHDOG=1");
  } while (wait_for_signal(1) == 0);
  notify_service("STOPPING=1");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  bool done = server.drain(0.2);
  if (!done) note("Stopping: waiting up to {:.0f} s for answers that run; once more to end at once\n", flags.grace);
  while (!done && std::chrono::duration<double>(Clock::now() - start).count() < flags.grace) {
    done = server.drain(0.1);
    if (const int signal = Signals::take()) raise_default(signal);  // the other of the two
  }
  if (!done) note("Ending the answers that still run\n");
  const double last_step = std::max(flags.grace, kLongestLastStep);
  server.stop(last_step);
  if (const auto hanging = hanging_model(models, last_step)) leave(*hanging);
  const server::Models::State last = models.state("");
  if (last.model && !last.model->cache_file.empty()) {  // else it was written when the model was unloaded
    Result<int64_t> saved = last.model->engine->save_cache(last.model->cache_file);
    if (!saved && saved.error().code == ErrorCode::kStalled) leave(last.id);
    HEARTH_ASSIGN(const int64_t tokens, std::move(saved));
    note("{} kept in {}\n", counted(tokens, "cached token"), last.model->cache_file);
  }
  if (models.loading()) std::_Exit(0);  // loading cannot be stopped
  return {};
}

}  // namespace

void add_serve(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = add_command(app, "serve", "Serve models over HTTP", chosen, [flags] { return serve(*flags); });
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);
  command->add_option("MORE", flags->more, "Further models, each loaded when a request names it");
  const auto group = "Server";
  command->add_option("--host", flags->server.host, "Address to listen on; 0.0.0.0: all of this machine")->group(group);
  command->add_option("--port", flags->server.port, "Port to listen on; 0: any that is free")
      ->group(group)
      ->transform(whole_number<uint16_t>());
  command->add_option("--api-key", flags->server.api_keys, "A key that clients must send; may be given more than once")
      ->group(group)
      ->allow_extra_args(false);
  command
      ->add_option("--allow-origin", flags->server.origins,
                   "Origin of web pages that may use the server, beside those of this machine; *: all")
      ->group(group)
      ->allow_extra_args(false);
  command
      ->add_option("--alias", flags->names,
                   "NAME: id of the first model, without it that of its file; NAME=ID: a further name of a model")
      ->group(group)
      ->allow_extra_args(false);
  command
      ->add_option("--models-dir", flags->folder, "Serve every .gguf file of this folder, beside those that are given")
      ->group(group);
  command
      ->add_option("--idle-unload", flags->idle_unload,
                   "Unload a model that nobody used for so many seconds; 0: never, which is the default for one model; "
                   "else 900")
      ->group(group)
      ->transform(number())
      ->check(CLI::Range(0.0, 1e9).description(""));
  command
      ->add_option("-P,--parallel,--np", flags->model.engine.max_sequences,
                   "Answers that are generated at the same time")
      ->group(group)
      ->transform(whole_number<int64_t>(1, kMaxSequences));
  command->add_option("--queue", flags->queue, "Requests that may wait beside those; more are turned away")
      ->group(group)
      ->transform(whole_number<int64_t>(0, 1'000'000));
  command
      ->add_option("--prompt-cache", flags->cache_file,
                   "Keep what the prefix cache holds in this file, from one start to the next")
      ->group(group);
  command
      ->add_flag("--check,!--no-check", flags->check,
                 "Compare one token with the reference backend at start; without it only for models up to 2 GiB")
      ->group(group);
  command
      ->add_option("--stall", flags->model.engine.stall_seconds = kStallSeconds,
                   "Seconds without progress after which a model has stalled: its requests end with an error")
      ->group(group)
      ->transform(number())
      ->check(CLI::Range(0.001, 1e6).description(""));
  command->add_option("--grace", flags->grace, "Seconds that running answers get when the server is stopped")
      ->group(group)
      ->transform(number())
      ->check(CLI::Range(0.0, 1e6).description(""));
  command->add_option("--max-connections", flags->server.max_connections, "Connections at the same time")
      ->group(group)
      ->transform(whole_number<int64_t>(1, 10'000));
}

}  // namespace hearth::cli
