// Clients that `hearth launch` can start: what each needs to talk to a server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth::cli {

struct Endpoint {
  std::string url;  // without /v1 and without a slash at its end
  std::string api_key;
  std::string model;
  int64_t context_tokens = 0;
  int64_t output_tokens = 0;  // of one answer, at most

  // Clients insist on a key; servers without one take any.
  std::string key_or_any() const { return api_key.empty() ? "hearth" : api_key; }
};

struct ConfigFile {
  std::string path;
  std::string text;  // all that it will hold
};

struct Launch {
  std::vector<std::string> arguments;                                           // before those of the user
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;  // nullopt: taken out
  std::vector<ConfigFile> files;
};

struct Client {
  std::string_view name;     // of `hearth launch`
  std::string_view title;    // as its makers write it
  std::string_view program;  // on the PATH
  std::string_view install;  // the command that installs it
  // Its system prompt and tools, an answer, and room for some work: below this it forgets what it is doing.
  int64_t least_context = 0;
  // Reads configuration files and says what is to be written; writes nothing.
  Result<Launch> (*plan)(const Endpoint& endpoint);
};

extern const Client kClaude, kCodex, kOpenClaw, kOpenCode;

}  // namespace hearth::cli
