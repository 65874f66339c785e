#include "cli/settings.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "cli/command.h"

namespace hearth::cli {
namespace {

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

std::string folder_path(std::string_view kind) {
  std::string xdg = environment(fmt::format("XDG_{}_HOME", kind));
  if (!xdg.empty()) return xdg + "/hearth";
  std::string below = kind == "CONFIG" ? ".config" : kind == "STATE" ? ".local/state" : ".cache";
  return environment("HOME") + "/" + below + "/hearth";
}

std::string variable_name(std::string flag) {
  for (char& c : flag) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "HEARTH_" + flag;
}

struct Config {
  std::string path;
  std::map<std::string, std::vector<std::string>> values;  // by variable_name(); several for a list
};

Result<Config> read_config() {
  std::string path = environment("HEARTH_CONFIG");
  if (path.empty()) {
    path = folder_path("CONFIG") + "/config";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return Config{};
  }
  Config config{.path = path};
  HEARTH_ASSIGN(std::string text, read_text(path));
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark, as some editors leave it
  try {
    std::istringstream stream(text);
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
      if (item.name == "++" || item.name == "--") continue;  // section marks
      if (!item.parents.empty() || item.inputs.empty()) {
        return fail(ErrorCode::kUsage, "{}: {} is not of the form name = value", path, item.fullname());
      }
      if (!config.values.emplace(variable_name(item.name), item.inputs).second) {
        return fail(ErrorCode::kUsage, "{}: {} is set twice", path, item.name);
      }
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUsage, "cannot read {}: {}", path, error.what());
  }
  return config;
}

// The flags of a command that settings can give, by their variable.
std::map<std::string, CLI::Option*> settable(CLI::App& command) {
  std::map<std::string, CLI::Option*> flags;
  for (CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option == command.get_help_ptr()) continue;
    flags.emplace(variable_name(option->get_lnames()[0]), option);
  }
  return flags;
}

void collect_names(CLI::App& app, std::set<std::string>& names) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (const auto& [variable, option] : settable(*command)) names.insert(variable);
    collect_names(*command, names);
  }
}

Result<void> check_names(CLI::App& app, const Config& config) {
  std::set<std::string> names;
  collect_names(app, names);
  for (const auto& [variable, values] : config.values) {
    if (names.contains(variable)) continue;
    std::string flag = variable.substr(std::string_view("HEARTH_").size());
    for (char& c : flag) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return fail(ErrorCode::kUsage, "{}: no command has a setting \"{}\"; `hearth run --help` lists them", config.path,
                flag);
  }
  return {};
}

}  // namespace

Result<void> apply_settings(CLI::App& app, CLI::App& command) {
  std::map<std::string, CLI::Option*> flags = settable(command);
  if (flags.empty()) return {};
  HEARTH_ASSIGN(Config config, read_config());
  HEARTH_TRY(check_names(app, config));

  std::map<const CLI::Option*, std::string> origins;  // of what was set below
  std::set<const CLI::Option*> typed;
  for (CLI::Option* option : command.get_options()) {
    if (option->count() > 0) typed.insert(option);
  }
  for (const auto& [variable, option] : flags) {
    std::string origin = variable;
    std::vector<std::string> values;
    if (std::string value = environment(variable); !value.empty()) {
      values = {value};
    } else if (auto found = config.values.find(variable); found != config.values.end()) {
      origin = config.path;
      values = found->second;
    }
    bool left_out = values.empty() || typed.contains(option);
    for (const CLI::Option* other : option->get_excludes()) {
      if (origins.contains(other) && !left_out) {
        return fail(ErrorCode::kUsage, "{}: --{} excludes --{} of {}; set one of them", origin, option->get_lnames()[0],
                    other->get_lnames()[0], origins[other]);
      }
      left_out |= typed.contains(other);
    }
    if (left_out) continue;
    try {
      option->add_result(values);
      option->run_callback();
    } catch (const CLI::Error& error) {
      return fail(ErrorCode::kUsage, "{}: {}", origin, error.what());
    }
    origins.emplace(option, origin);
  }
  return {};
}

Result<std::string> user_folder(std::string_view kind) {
  std::string path = folder_path(kind);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(ErrorCode::kIo, "cannot make the folder {}: {}", path, error.message());
  return path;
}

}  // namespace hearth::cli
