#include "server/models.h"

#include <chrono>
#include <filesystem>
#include <utility>

namespace hearth::server {
namespace {

// Does a tool that is offered change the prompt?
bool shows_tools(const Text& text) {
  if (!text.has_chat_template()) return false;
  constexpr const char* kMessages = R"({"messages": [{"role": "user", "content": "Hi"}])";
  constexpr const char* kTool =
      R"("tools": [{"type": "function", "function": {"name": "probe_of_tools", "description": "x", "parameters":
      {"type": "object", "properties": {}}}}])";
  const Result<Prompt> prompt = text.render(fmt::format("{}, {}}}", kMessages, kTool), {});
  return prompt && prompt->text.find("probe_of_tools") != std::string::npos;
}

Result<void> warm_up(Engine& engine, const Text& text) {
  HEARTH_ASSIGN(std::vector<int32_t> prompt, text.tokenize("Hello", false, true));
  if (prompt.empty()) prompt.push_back(0);
  HEARTH_ASSIGN(Generation generation,
                engine.submit({.prompt = std::move(prompt), .max_tokens = 2, .ignore_end = true}));
  while (auto event = generation.next()) {
    if (auto* failed = std::get_if<Failed>(&*event)) return std::move(failed->error).with_context("the first answer");
  }
  engine.clear_cache();
  return {};
}

// A device that computes nonsense is found out before anybody reads it. Sound ones differ by less than 1e-3.
constexpr double kMostDivergence = 0.05;
constexpr size_t kCheckedBytes = size_t{2} << 30;

Result<void> check_device(Model& model) {
  HEARTH_ASSIGN(const double divergence, model.check_device());
  if (divergence <= kMostDivergence) return {};
  return fail(
      ErrorCode::kInternal,
      "{} computes something else than the model says: its next token differs from the reference by {:.3f} nat; "
      "another --device or --isa would work, and --no-check does without this check",
      model.info().device, divergence);
}

// A cache that cannot be used costs time, not answers.
void restore_cache(ServedModel& served) {
  auto tokens = served.engine->restore_cache(served.cache_file);
  if (tokens) {
    served.notes.push_back(fmt::format("{} cached tokens from {}", *tokens, served.cache_file));
  } else if (tokens.error().code != ErrorCode::kNotFound) {
    served.notes.push_back(std::move(tokens).error().message);
  }
}

std::string default_id(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  return name.empty() ? "model" : name;
}

}  // namespace

Result<std::shared_ptr<ServedModel>> load_model(const LoadOptions& options) {
  auto served = std::make_shared<ServedModel>();
  HEARTH_ASSIGN(served->model, Model::open(options.path, options.model));
  const bool small = served->model->info().file_bytes <= kCheckedBytes;
  if (options.check.value_or(small)) HEARTH_TRY(check_device(*served->model));
  HEARTH_ASSIGN(served->engine, Engine::create(served->model, options.engine));
  HEARTH_TRY(warm_up(*served->engine, served->text()));
  served->id = options.id.empty() ? default_id(options.path) : options.id;
  served->options = options.engine;
  served->notes = served->text().warnings();
  served->cache_file = options.cache_file;
  if (!served->cache_file.empty()) restore_cache(*served);
  served->created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  served->template_shows_tools = shows_tools(served->text());
  served->most_in_flight = options.engine.max_sequences + options.queue;
  return served;
}

Models::Models(LoadOptions options) : options_(std::move(options)) {
  if (options_.id.empty()) options_.id = default_id(options_.path);
  options_.model.progress = [this](size_t done, size_t total) {
    if (total > 0) progress_ = static_cast<double>(done) / static_cast<double>(total);
  };
}

Models::~Models() {
  if (loader_.joinable()) loader_.join();
}

void Models::start_loading() {
  loader_ = std::thread([this] {
    auto loaded = guarded("load the model", [&] { return load_model(options_); });
    std::lock_guard lock(mutex_);
    if (loaded) {
      progress_ = 1;
      model_ = *std::move(loaded);
    } else {
      failure_ = std::move(loaded).error();
    }
  });
}

Answer<std::shared_ptr<ServedModel>> Models::get() const {
  std::lock_guard lock(mutex_);
  if (model_) return model_;
  if (failure_) return refuse(Refusal::kUnavailable, "the model could not be loaded: " + failure_->message);
  ApiError error = refuse(Refusal::kUnavailable, fmt::format("the model is loading: {:.0f} %", 100 * progress_));
  error.retry_seconds = 2;
  return error;
}

std::optional<Error> Models::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace hearth::server
