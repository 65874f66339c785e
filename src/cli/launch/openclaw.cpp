// OpenClaw: a provider and the model of its agents in openclaw.json.
#include <cstdlib>

#include "cli/launch/config_file.h"

namespace hearth::cli {

using server::Json;

static Result<Launch> plan_openclaw(const Endpoint& endpoint) {
  const Json model = {{"id", endpoint.model},
                      {"name", endpoint.model},
                      {"reasoning", false},
                      {"input", {"text"}},
                      {"cost", {{"input", 0}, {"output", 0}, {"cacheRead", 0}, {"cacheWrite", 0}}},
                      {"contextWindow", endpoint.context_tokens},
                      {"maxTokens", endpoint.output_tokens}};
  Json provider = {{"baseUrl", endpoint.url + "/v1"},
                   {"apiKey", endpoint.key_or_any()},
                   {"api", "openai-completions"},
                   {"timeoutSeconds", 3600},
                   {"models", Json::array({model})}};
  const std::string chosen = "hearth/" + endpoint.model;
  const char* named = std::getenv("OPENCLAW_CONFIG_PATH");
  const std::string path = named != nullptr && *named != '\0'
                               ? std::string(named)
                               : folder_or("OPENCLAW_STATE_DIR", ".openclaw") + "/openclaw.json";
  const Json addition = {{"models", {{"providers", {{"hearth", provider}}}}},
                         {"agents", {{"defaults", {{"model", {{"primary", chosen}}}}}}}};
  HEARTH_ASSIGN(JsonConfig config, JsonConfig::open(path, addition));
  HEARTH_ASSIGN(Json* const place, config.at({"models", "providers", "hearth"}));
  *place = std::move(provider);
  HEARTH_ASSIGN(Json* const choice, config.at({"agents", "defaults", "model"}));
  if (choice->is_object()) {
    (*choice)["primary"] = chosen;  // fallbacks stay
  } else {
    *choice = {{"primary", chosen}};
  }
  return Launch{.arguments = {}, .environment = {}, .files = {config.file()}};
}

const Client kOpenClaw = {.name = "openclaw",
                          .title = "OpenClaw",
                          .program = "openclaw",
                          .install = "npm install -g openclaw",
                          .least_context = 65536,
                          .plan = plan_openclaw};

}  // namespace hearth::cli
