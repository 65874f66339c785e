// Claude Code: all of it is environment.
#include "cli/launch/client.h"

namespace hearth::cli {

static Result<Launch> plan_claude(const Endpoint& endpoint) {
  const std::string context = fmt::format("{}", endpoint.context_tokens);
  // A prompt may take long to read; the server sends signs of life meanwhile. Milliseconds.
  const std::string patience = "3600000";
  Launch launch;
  launch.environment = {
      {"ANTHROPIC_BASE_URL", endpoint.url},
      {"ANTHROPIC_AUTH_TOKEN", endpoint.key_or_any()},
      {"ANTHROPIC_API_KEY", std::nullopt},  // would be asked about, and sent elsewhere
      {"ANTHROPIC_MODEL", endpoint.model},
      {"ANTHROPIC_DEFAULT_OPUS_MODEL", endpoint.model},
      {"ANTHROPIC_DEFAULT_SONNET_MODEL", endpoint.model},
      {"ANTHROPIC_DEFAULT_HAIKU_MODEL", endpoint.model},
      {"ANTHROPIC_DEFAULT_FABLE_MODEL", endpoint.model},
      {"CLAUDE_CODE_SUBAGENT_MODEL", endpoint.model},
      {"CLAUDE_CODE_MAX_CONTEXT_TOKENS", context},
      {"CLAUDE_CODE_MAX_OUTPUT_TOKENS", fmt::format("{}", endpoint.output_tokens)},
      {"CLAUDE_CODE_AUTO_COMPACT_WINDOW", context},
      {"API_TIMEOUT_MS", patience},
      {"CLAUDE_STREAM_IDLE_TIMEOUT_MS", patience},
      // What changes from request to request at the head of the prompt would undo all that the server has cached.
      {"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"},
      {"CLAUDE_CODE_TOTAL_TOKENS_REMINDER", "off"},
      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
      {"DISABLE_TELEMETRY", "1"},
      {"DISABLE_ERROR_REPORTING", "1"},
      {"DISABLE_COST_WARNINGS", "1"},
  };
  return launch;
}

const Client kClaude = {.name = "claude",
                        .title = "Claude Code",
                        .program = "claude",
                        .install = "npm install -g @anthropic-ai/claude-code",
                        .least_context = 65536,
                        .plan = plan_claude};

}  // namespace hearth::cli
