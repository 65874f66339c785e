// What a server says about the model that it serves.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "server/http_client.h"

namespace hearth::cli {

struct ServedModel {
  std::string id;
  int64_t context_tokens = 0;  // 0: the server does not say
};

// The flags of commands that talk to a server.
struct ServerFlags {
  std::string url = "http://127.0.0.1:8080";
  std::string model;  // empty: the first that the server names
  std::string api_key;
};
void add_server_flags(CLI::App& command, ServerFlags& flags);

// A client that sends the key as either protocol wants it.
Result<server::HttpClient> client_for(const ServerFlags& flags, server::ClientLimits limits = {});

// Asks GET /v1/models, and GET /props for what that does not say. A server that still loads the model is waited for, at
// most this long.
inline constexpr double kLoadSeconds = 600;
Result<ServedModel> ask_for_model(const server::HttpClient& client, const std::string& wanted,
                                  double most_seconds = kLoadSeconds);

}  // namespace hearth::cli
