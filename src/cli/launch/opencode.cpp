// OpenCode: a provider in its global opencode.json, and the choice of the model in the environment, so that what the
// user chose there stays.
#include <filesystem>

#include "cli/launch/config_file.h"

namespace hearth::cli {

using server::Json;

static Result<Launch> plan_opencode(const Endpoint& endpoint) {
  // Without a limit of the context it never compacts.
  const Json model = {{"name", endpoint.model},
                      {"limit", {{"context", endpoint.context_tokens}, {"output", endpoint.output_tokens}}}};
  Json provider = {{"npm", "@ai-sdk/openai-compatible"},
                   {"name", "Hearth"},
                   {"options",
                    {{"baseURL", endpoint.url + "/v1"},
                     {"apiKey", endpoint.key_or_any()},
                     {"timeout", false},
                     {"headerTimeout", false},
                     {"chunkTimeout", 600000}}},
                   {"models", {{endpoint.model, model}}}};
  const std::string folder = folder_or("XDG_CONFIG_HOME", ".config") + "/opencode";
  std::string path = folder + "/opencode.json";
  // It reads both names; the one that is there is the one that the user keeps.
  std::error_code error;
  if (const std::string other = folder + "/opencode.jsonc";
      std::filesystem::exists(other, error) && !std::filesystem::exists(path, error)) {
    path = other;
  }
  HEARTH_ASSIGN(JsonConfig config, JsonConfig::open(path, {{"provider", {{"hearth", provider}}}}));
  if (config.root.empty()) config.root["$schema"] = "https://opencode.ai/config.json";
  HEARTH_ASSIGN(Json* const place, config.at({"provider", "hearth"}));
  *place = std::move(provider);
  const std::string chosen = "hearth/" + endpoint.model;
  return Launch{
      .arguments = {},
      .environment = {{"OPENCODE_CONFIG_CONTENT", server::dump({{"model", chosen}, {"small_model", chosen}})}},
      .files = {config.file()}};
}

const Client kOpenCode = {.name = "opencode",
                          .title = "OpenCode",
                          .program = "opencode",
                          .install = "npm install -g opencode-ai",
                          .least_context = 32768,
                          .plan = plan_opencode};

}  // namespace hearth::cli
