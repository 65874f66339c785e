#include "cli/agent/served_model.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/command.h"
#include "server/json.h"

namespace hearth::cli {

using server::HttpReply;
using server::Json;

void add_server_flags(CLI::App& command, ServerFlags& flags) {
  command.add_option("--url", flags.url, "Address of the server, without /v1");
  command.add_option("--model", flags.model, "Id of the model; else the first that the server names");
  command.add_option("--api-key", flags.api_key, "Key that the server asks for");
}

Result<server::HttpClient> client_for(const ServerFlags& flags, server::ClientLimits limits) {
  HEARTH_ASSIGN(server::Url url, server::parse_url(flags.url));
  // Both become lines of requests, of configurations and of environments.
  for (const auto& [name, value] : {std::pair("--api-key", &flags.api_key), {"--model", &flags.model}}) {
    if (std::ranges::any_of(*value, [](unsigned char c) { return c < ' ' || c == 0x7F; })) {
      return fail(ErrorCode::kUsage, "{} holds control characters", name);
    }
  }
  server::Headers headers = {{"anthropic-version", "2023-06-01"}};
  if (!flags.api_key.empty()) {
    headers.emplace_back("Authorization", "Bearer " + flags.api_key);
    headers.emplace_back("x-api-key", flags.api_key);
  }
  return server::HttpClient(std::move(url), std::move(headers), limits);
}

namespace {

// Servers name the length of the context in one of these ways.
int64_t context_of(const Json& model) {
  for (const char* name : {"context_length", "context_window", "max_model_len", "max_context_length", "n_ctx"}) {
    const Json value = model.value(name, Json());
    if (value.is_number_integer() && value.get<int64_t>() > 0) return value.get<int64_t>();
  }
  const Json meta = model.value("meta", Json());
  return meta.is_object() ? context_of(meta) : 0;
}

// `loading`: there is no answer yet, or not all of it, because the server loads the model.
Result<ServedModel> ask(const server::HttpClient& client, const std::string& wanted, bool& loading) {
  const std::string address = client.url().text();
  Result<HttpReply> reply = client.get("/v1/models");
  if (!reply && reply.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound,
                "{}; start a server with `hearth serve MODEL`, or give the --url of one that runs",
                reply.error().message);
  }
  if (!reply) return std::move(reply).error();
  if (reply->status == 401 || reply->status == 403) {
    return fail(ErrorCode::kUsage, "the server at {} wants a key that it knows; give it by --api-key", address);
  }
  loading = reply->status == 503;  // llama.cpp's answers that until then
  server::Answer<Json> json = server::parse_json(reply->body);
  const Json models = reply->good() && json ? json->value("data", Json()) : Json();
  if (!models.is_array()) {
    return fail(ErrorCode::kUnsupported, "{}/v1/models does not answer as a model server does ({})", address,
                reply->good() ? "no list of models" : error_text(*reply));
  }
  std::vector<std::string> ids;
  ServedModel served;
  loading = false;
  for (const Json& model : models) {
    const Json id = model.is_object() ? model.value("id", Json()) : Json();
    if (!id.is_string() || id.get_ref<const std::string&>().empty()) continue;
    ids.push_back(id.get<std::string>());
    if (!served.id.empty() || (!wanted.empty() && wanted != ids.back())) continue;
    served = {.id = ids.back(), .context_tokens = context_of(model)};
    loading = model.value("status", Json()) == "loading";
  }
  if (served.id.empty() && ids.empty()) {
    return fail(ErrorCode::kNotFound, "the server at {} has no model", address);
  }
  if (served.id.empty()) {
    return fail(ErrorCode::kUsage, "the server at {} has no model {}; it has {}", address, wanted,
                fmt::join(ids, ", "));
  }
  if (std::ranges::any_of(served.id, [](unsigned char c) { return c < ' ' || c == 0x7F; })) {
    return fail(ErrorCode::kUnsupported, "the name of the model at {} holds control characters", address);
  }
  if (served.context_tokens > 0) return served;
  if (Result<HttpReply> props = client.get("/props"); props && props->good()) {
    if (server::Answer<Json> body = server::parse_json(props->body)) {
      served.context_tokens = context_of(*body);
      const Json defaults = body->value("default_generation_settings", Json());
      if (served.context_tokens == 0 && defaults.is_object()) served.context_tokens = context_of(defaults);
    }
  }
  return served;
}

}  // namespace

Result<ServedModel> ask_for_model(const server::HttpClient& client, const std::string& wanted, double most_seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ProgressLine progress;
  while (true) {
    bool loading = false;
    Result<ServedModel> served = ask(client, wanted, loading);
    if (!loading) return served;
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (waited.count() >= most_seconds) {
      return fail(ErrorCode::kUnsupported, "the server at {} still loads its model after {:.0f} s; try again later",
                  client.url().text(), waited.count());
    }
    progress.show(fmt::format("Waiting for {}, which loads its model", client.url().text()));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace hearth::cli
