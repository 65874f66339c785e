// hearth serve: the model over HTTP.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "server/protocol.h"

namespace hearth::cli {
namespace {

struct ServeFlags {
  ModelFlags model;
  server::ServerOptions server;
  std::string alias;
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
    if (models.get()) return true;
    if (auto failure = models.failure()) return *std::move(failure);
    if (wait_for_signal(0.1) != 0) return false;
    progress.show(fmt::format("Loading {:.0f} %", 100 * models.progress()));
  }
}

Result<void> serve(ServeFlags& flags) {
  if (flags.model.path.empty()) {
    HEARTH_ASSIGN(flags.model.path, model_in_the_box());
  }
  HEARTH_ASSIGN(flags.model.model.chat_template, read_chat_template(flags.model.chat_template_file));
  const Signals signals({SIGINT, SIGTERM}, Signals::kOnce);  // the second one ends the program at once
  server::Models models({.path = flags.model.path,
                         .model = flags.model.model,
                         .engine = flags.model.engine,
                         .id = flags.alias,
                         .queue = flags.queue,
                         .check = flags.check,
                         .cache_file = flags.cache_file});
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
  auto model = models.get();
  for (const std::string& text : (*model)->notes) note("hearth: note: {}\n", text);
  const ModelInfo& info = (*model)->model->info();
  note("{} on {}, context {} tokens\nListening on {}\n", models.id(), info.device, info.sequence_tokens, server.url());

  while (wait_for_signal(3600) == 0) {
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  bool done = server.drain(0.2);
  if (!done) note("Stopping: waiting up to {:.0f} s for answers that run; once more to end at once\n", flags.grace);
  while (!done && std::chrono::duration<double>(Clock::now() - start).count() < flags.grace) {
    done = server.drain(0.1);
    if (const int signal = Signals::take()) raise_default(signal);  // the other of the two
  }
  if (!done) note("Ending the answers that still run\n");
  server.stop();
  if (flags.cache_file.empty()) return {};
  HEARTH_ASSIGN(const int64_t tokens, (*model)->engine->save_cache(flags.cache_file));
  note("{} cached tokens kept in {}\n", tokens, flags.cache_file);
  return {};
}

}  // namespace

void add_serve(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = add_command(app, "serve", "Serve a model over HTTP", chosen, [flags] { return serve(*flags); });
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);
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
  command->add_option("--alias", flags->alias, "Name of the model for clients; without it that of the file")
      ->group(group);
  command
      ->add_option("-P,--parallel,--np", flags->model.engine.max_sequences,
                   "Answers that are generated at the same time")
      ->group(group)
      ->transform(whole_number<int64_t>());
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
  command->add_option("--grace", flags->grace, "Seconds that running answers get when the server is stopped")
      ->group(group)
      ->transform(number());
  command->add_option("--max-connections", flags->server.max_connections, "Connections at the same time")
      ->group(group)
      ->transform(whole_number<int64_t>(1, 10'000));
}

}  // namespace hearth::cli
