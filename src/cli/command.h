// What every command of `hearth` shares: registration, exit codes, reading and writing whole files.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output.h"

namespace hearth::cli {

// 2 for kUsage, 1 for every other error.
int exit_code(const Error& error);

// What a command does once its flags are known.
using Body = std::function<Result<void>()>;

// Adds a subcommand. When it is the one that is parsed, `chosen` becomes its body.
CLI::App* add_command(CLI::App& app, std::string name, std::string what, Body& chosen, Body body);

// One function per command, each in its own file.
void add_run(CLI::App& app, Body& chosen);
void add_chat(CLI::App& app, Body& chosen);
void add_inspect(CLI::App& app, Body& chosen);
void add_tokenize(CLI::App& app, Body& chosen);
void add_render(CLI::App& app, Body& chosen);
void add_bench(CLI::App& app, Body& chosen);
void add_bench_agent(CLI::App& bench, Body& chosen);
void add_eval(CLI::App& app, Body& chosen);
void add_doctor(CLI::App& app, Body& chosen);
void add_serve(CLI::App& app, Body& chosen);
// `client_arguments` go to the client that is started. They live as long as `chosen`.
void add_launch(CLI::App& app, Body& chosen, const std::vector<std::string>& client_arguments);
void add_synth(CLI::App& app, Body& chosen);
void add_completions(CLI::App& app, Body& chosen);
void add_version(CLI::App& app, Body& chosen);

// The whole of a file, or of stdin for "-". At most 256 MiB.
Result<std::string> read_text(const std::string& path);
// kInvalidInput, which names the first byte that is not UTF-8.
Result<void> check_utf8(std::string_view name, std::string_view text);
// Replaces the file atomically.
Result<void> write_text(const std::string& path, std::string_view text);

}  // namespace hearth::cli
