// Codex CLI: a profile in a file of its own, $CODEX_HOME/hearth.config.toml.
#include "cli/launch/config_file.h"

namespace hearth::cli {

static Result<Launch> plan_codex(const Endpoint& endpoint) {
  std::string provider =
      fmt::format("name = \"Hearth\", base_url = {}, wire_api = \"responses\", stream_idle_timeout_ms = 3600000",
                  toml_string(endpoint.url + "/v1"));
  if (!endpoint.api_key.empty()) provider += ", env_key = \"HEARTH_API_KEY\"";
  const std::string block = fmt::format(
      "model = {}\n"
      "model_provider = \"hearth\"\n"
      "model_context_window = {}\n"
      "model_auto_compact_token_limit = {}\n"
      "model_providers.hearth = {{ {} }}\n",
      toml_string(endpoint.model), endpoint.context_tokens, endpoint.context_tokens - endpoint.output_tokens, provider);
  const std::string path = folder_or("CODEX_HOME", ".codex") + "/hearth.config.toml";
  HEARTH_ASSIGN(const std::string before, text_if_any(path));
  ConfigFile file{.path = path, .text = {}};
  HEARTH_ASSIGN(file.text, with_block(path, before, block));
  Launch launch{.arguments = {"--profile", "hearth"}, .environment = {}, .files = {file}};
  if (!endpoint.api_key.empty()) launch.environment.emplace_back("HEARTH_API_KEY", endpoint.api_key);
  return launch;
}

const Client kCodex = {.name = "codex",
                       .title = "Codex",
                       .program = "codex",
                       .install = "npm install -g @openai/codex",
                       .least_context = 32768,
                       .plan = plan_codex};

}  // namespace hearth::cli
