// OpenCode: a provider in its global opencode.json, and the choice of the model in the environment, so that what the
// user chose there stays.
#include <filesystem>

#include "cli/command.h"
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
  const std::string chosen = "hearth/" + endpoint.model;
  Json content = {{"model", chosen}, {"small_model", chosen}};
  std::vector<ConfigFile> files;
  auto config = JsonConfig::open(path, {{"provider", {{"hearth", provider}}}});
  if (config) {
    if (config->root.empty()) config->root["$schema"] = "https://opencode.ai/config.json";
    HEARTH_ASSIGN(Json* const place, config->at({"provider", "hearth"}));
    *place = std::move(provider);
    files.push_back(config->file());
  } else if (config.error().code == ErrorCode::kUnsupported) {
    // It reads more than plain JSON. What it finds in the environment it adds to the file.
    note("hearth: note: {} has comments or is no plain JSON; it stays as it is, and only this start knows the server\n",
         path);
    content["provider"] = {{"hearth", std::move(provider)}};
  } else {
    return std::move(config).error();
  }
  return Launch{
      .arguments = {}, .environment = {{"OPENCODE_CONFIG_CONTENT", server::dump(content)}}, .files = std::move(files)};
}

const Client kOpenCode = {.name = "opencode",
                          .title = "OpenCode",
                          .program = "opencode",
                          .install = "npm install -g opencode-ai",
                          .least_context = 32768,
                          .plan = plan_opencode};

}  // namespace hearth::cli
