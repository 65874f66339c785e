#include "cli/settings.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hearth::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string folder_path(std::string_view kind) {
  std::string xdg = environment(fmt::format("XDG_{}_HOME", kind).c_str());
  if (!xdg.empty()) return xdg + "/hearth";
  std::string below = kind == "CONFIG" ? ".config" : kind == "STATE" ? ".local/state" : ".cache";
  return environment("HOME") + "/" + below + "/hearth";
}

std::string variable_name(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "HEARTH_" + name;
}

// Where the configuration came from and which names it set.
std::string config_path;
std::vector<std::string> config_names;

}  // namespace

Result<void> load_config() {
  std::string path = environment("HEARTH_CONFIG");
  bool asked = !path.empty();
  if (!asked) path = folder_path("CONFIG") + "/config";
  std::ifstream file(path);
  if (!file) {
    if (asked) return fail(ErrorCode::kUsage, "cannot open {}, which HEARTH_CONFIG names", path);
    return {};
  }
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(file)) {
      if (item.name == "++" || item.name == "--") continue;  // section marks
      if (!item.parents.empty() || item.inputs.size() != 1) {
        return fail(ErrorCode::kUsage, "{}: {} is not of the form name = value", path, item.fullname());
      }
      config_path = path;
      config_names.push_back(item.name);
      ::setenv(variable_name(item.name).c_str(), item.inputs[0].c_str(), /*overwrite=*/0);
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUsage, "cannot read {}: {}", path, error.what());
  }
  return {};
}

Result<void> check_config(const CLI::App& app) {
  for (const std::string& name : config_names) {
    bool known = false;
    for (const CLI::App* command : app.get_subcommands({})) {
      for (const CLI::Option* option : command->get_options()) known |= option->get_envname() == variable_name(name);
    }
    if (!known) {
      return fail(ErrorCode::kUsage, "{}: no command has a setting \"{}\"; `hearth run --help` lists them", config_path,
                  name);
    }
  }
  return {};
}

CLI::Option* with_environment(CLI::Option* option) { return option->envname(variable_name(option->get_single_name())); }

Result<std::string> user_folder(std::string_view kind) {
  std::string path = folder_path(kind);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(ErrorCode::kIo, "cannot make the folder {}: {}", path, error.message());
  return path;
}

}  // namespace hearth::cli
