#include "server/models.h"

#include <sys/stat.h>

#include <algorithm>
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

// The engine has recorded its plans, which takes no longer for a large model than for a small one. One token more
// touches what else is used first: weights that are not in memory yet, the vocabulary, the sampler. A whole chunk of a
// prompt would take minutes where the processor is slow.
Result<void> warm_up(Engine& engine, const Text& text) {
  HEARTH_ASSIGN(std::vector<int32_t> prompt, text.tokenize("Hello", false, true));
  if (prompt.empty()) prompt.push_back(0);
  HEARTH_ASSIGN(Generation generation,
                engine.submit({.prompt = std::move(prompt), .max_tokens = 2, .ignore_end = true}));
  while (auto event = generation.next()) {
    if (auto* failed = std::get_if<Failed>(&*event)) return std::move(failed->error).with_context("the first answer");
  }
  return engine.clear_cache();
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

// "some/Model-Q8_0-00001-of-00003.gguf" -> "Model-Q8_0"
std::string default_id(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  constexpr std::string_view kPart = "-00001-of-00001";
  const auto is_part = [&](std::string_view end) {
    for (size_t i = 0; i < kPart.size(); ++i) {
      const bool digit = end[i] >= '0' && end[i] <= '9';
      if (kPart[i] == '0' || kPart[i] == '1' ? !digit : end[i] != kPart[i]) return false;
    }
    return true;
  };
  if (name.size() > kPart.size() && is_part(std::string_view(name).substr(name.size() - kPart.size()))) {
    name.resize(name.size() - kPart.size());
  }
  return name.empty() ? "model" : name;
}

// What is known at once; the rest is for the loader's thread.
ModelFile stat_file(const std::string& path) {
  ModelFile file;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return file;
  file.bytes = static_cast<size_t>(found.st_size);
  file.modified = found.st_mtime;
  return file;
}

}  // namespace

Answer<Places> Places::take(std::shared_ptr<ServedModel> model, int64_t count) {
  const int64_t before = model->in_flight.fetch_add(count);
  Places places(std::move(model), count);
  const int64_t most = places.model_->most_in_flight;
  if (before == 0 || before + count <= most) return places;
  ApiError error =
      refuse(Refusal::kOverloaded,
             fmt::format("the server has {} requests that run or wait, and takes {}; try again later", before, most));
  error.retry_seconds = 5;
  return error;
}

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
  std::ranges::copy(served->model->info().notes, std::back_inserter(served->notes));
  served->cache_file = options.cache_file;
  if (!served->cache_file.empty()) restore_cache(*served);
  served->created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  served->template_shows_tools = shows_tools(served->text());
  served->most_in_flight = options.engine.max_sequences + options.queue;
  return served;
}

// ---- names ----

Models::Models(LoadOptions only) : Models(std::vector<LoadOptions>{std::move(only)}) {}

Models::Models(std::vector<LoadOptions> models, ModelsOptions options) : options_(std::move(options)) {
  for (LoadOptions& one : models) {
    auto slot = std::make_unique<Slot>();
    slot->options = std::move(one);
    std::string& id = slot->options.id;
    if (id.empty()) id = default_id(slot->options.path);
    // Files of one name in several folders.
    for (int n = 2; find(id) != nullptr; ++n) id = fmt::format("{}-{}", default_id(slot->options.path), n);
    slot->file = stat_file(slot->options.path);
    slot->options.model.progress = [s = slot.get()](size_t done, size_t total) {
      if (total > 0) s->progress = static_cast<double>(done) / static_cast<double>(total);
    };
    slots_.push_back(std::move(slot));
  }
}

Models::~Models() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (loader_.joinable()) loader_.join();
}

Result<void> Models::add_alias(const std::string& name, const std::string& id) {
  Slot* slot = find(id);
  if (slot == nullptr) {
    std::string ids;
    for (const auto& other : slots_) ids += (ids.empty() ? "" : ", ") + other->options.id;
    return fail(ErrorCode::kUsage, "the name {} cannot be given to {}: there is no such model; there are {}", name, id,
                ids);
  }
  if (const Slot* other = find(name); other != nullptr && other != slot) {
    return fail(ErrorCode::kUsage, "the name {} cannot be given to {}: {} has it", name, id, other->options.id);
  }
  if (find(name) == nullptr) slot->aliases.push_back(name);
  return {};
}

Models::Slot* Models::find(const std::string& name) const {
  for (const auto& slot : slots_) {
    if (slot->options.id == name || std::ranges::find(slot->aliases, name) != slot->aliases.end()) return slot.get();
  }
  return nullptr;
}

Models::Slot* Models::find_tagged(const std::string& name) const {
  if (Slot* slot = find(name)) return slot;
  constexpr std::string_view kTag = ":latest";  // clients of Ollama add it
  return name.ends_with(kTag) ? find(name.substr(0, name.size() - kTag.size())) : nullptr;
}

Models::Slot& Models::choose(const std::string& name) const {
  Slot* slot = find_tagged(name);
  return slot != nullptr ? *slot : *slots_.front();
}

// ---- use ----

void Models::want(Slot& slot) const {
  if (slot.wanted) return;
  slot.wanted = true;
  slot.progress = 0;
  slot.failure.reset();
  queue_.push_back(&slot);
  work_.notify_all();
}

Answer<std::shared_ptr<ServedModel>> Models::get(const std::string& name, const std::function<bool()>& alive) const {
  Slot& slot = choose(name);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.longest_wait_seconds));
  std::unique_lock lock(mutex_);
  slot.last_used = Clock::now();
  if (slot.model) return slot.model;
  want(slot);
  const int64_t attempts = slot.attempts;
  ++slot.waiting;
  bool stays = true;
  while (stays && slot.attempts == attempts && Clock::now() < deadline) {
    attempted_.wait_for(lock, std::chrono::milliseconds(100));
    lock.unlock();
    stays = alive();
    lock.lock();
  }
  --slot.waiting;
  if (slot.model) return slot.model;
  if (!stays) return refuse(Refusal::kUnavailable, "the client left while the model was loading, or the server stops");
  if (slot.attempts == attempts || !slot.failure) {
    ApiError error = refuse(Refusal::kUnavailable,
                            fmt::format("the model {} is loading: {:.0f} %", slot.options.id, 100 * slot.progress));
    error.retry_seconds = 5;
    return error;
  }
  ApiError error = refuse(Refusal::kUnavailable,
                          fmt::format("the model {} could not be loaded: {}", slot.options.id, slot.failure->message));
  if (slot.failure->code == ErrorCode::kOutOfMemory) error.retry_seconds = 30;
  return error;
}

Answer<std::shared_ptr<ServedModel>> Models::get() const {
  const State now = state("");
  if (now.model) return now.model;
  if (now.failure) return refuse(Refusal::kUnavailable, "the model could not be loaded: " + now.failure->message);
  ApiError error = refuse(Refusal::kUnavailable, fmt::format("the model is loading: {:.0f} %", 100 * now.progress));
  error.retry_seconds = 2;
  return error;
}

Models::State Models::state_of(const Slot& slot) const {
  const Status status = slot.model     ? Status::kReady
                        : slot.wanted  ? Status::kLoading
                        : slot.failure ? Status::kFailed
                                       : Status::kUnloaded;
  return {.id = slot.options.id,
          .aliases = slot.aliases,
          .status = status,
          .progress = slot.progress,
          .failure = slot.failure,
          .model = slot.model,
          .info = slot.info,
          .file = slot.file,
          .created = slot.created,
          .loads = slot.loads,
          .counters = slot.counters};
}

Models::State Models::state(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return state_of(choose(name));
}

std::vector<Models::State> Models::states() const {
  std::lock_guard lock(mutex_);
  std::vector<State> all;
  for (const auto& slot : slots_) all.push_back(state_of(*slot));
  return all;
}

bool Models::loading() const {
  std::lock_guard lock(mutex_);
  return !queue_.empty();
}

// ---- the loader's thread ----

void Models::start_loading() {
  std::lock_guard lock(mutex_);
  want(*slots_.front());
  loader_ = std::thread([this] { work(); });
}

void Models::work() {
  const double idle = options_.idle_unload_seconds;
  const std::chrono::duration<double> pause(std::clamp(idle / 4, 0.01, 1.0));
  std::unique_lock lock(mutex_);
  size_t files_read = 0;
  while (!stopping_) {
    if (!queue_.empty()) {
      load(*queue_.front(), lock);
      queue_.pop_front();
    } else if (files_read < slots_.size()) {
      read_file(*slots_[files_read++], lock);
    } else if (idle > 0) {
      unload_idle(lock);
      if (queue_.empty() && !stopping_) work_.wait_for(lock, pause);
    } else {
      work_.wait(lock);
    }
  }
}

void Models::read_file(Slot& slot, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  auto file = guarded("read a model file", [&] { return read_model_file(slot.options.path); });
  lock.lock();
  if (file) slot.file = *std::move(file);
}

void Models::load(Slot& slot, std::unique_lock<std::mutex>& lock) {
  const auto attempt = [&] {
    lock.unlock();
    auto loaded = guarded("load the model", [&] { return options_.load(slot.options); });
    lock.lock();
    return loaded;
  };
  if (slot.model) {  // it was to be unloaded when it was asked for, and could not go
    slot.wanted = false;
    ++slot.attempts;
    return attempted_.notify_all();
  }
  const Clock::time_point start = Clock::now();
  auto loaded = attempt();
  while (!loaded && loaded.error().code == ErrorCode::kOutOfMemory && unload_longest_unused(lock)) loaded = attempt();
  slot.last_used = Clock::now();
  slot.wanted = false;
  // Whoever starts the server tells how the first attempt with the default model went.
  const bool told = ++slot.attempts == 1 && &slot == slots_.front().get();
  std::string text;
  if (loaded) {
    slot.progress = 1;
    slot.model = *std::move(loaded);
    slot.model->counters = slot.counters;
    slot.options.check = false;  // it was done, or was not wanted
    slot.info = slot.model->model->info();
    slot.file.architecture = slot.info->architecture;
    slot.file.parameters = slot.info->parameters;
    slot.created = slot.model->created;
    ++slot.loads;
    if (!told) {
      text = fmt::format("{} loaded in {:.1f} s", slot.options.id,
                         std::chrono::duration<double>(slot.last_used - start).count());
      for (const std::string& note : slot.model->notes) text += "; " + note;
    }
  } else {
    slot.failure = std::move(loaded).error();
    if (!told) text = fmt::format("{} could not be loaded: {}", slot.options.id, slot.failure->message);
  }
  attempted_.notify_all();
  if (text.empty()) return;
  lock.unlock();
  notice(text);
  lock.lock();
}

// Nobody holds it or waits for it. Others get it only while mutex_ is held, so that this stays true under the lock. One
// that stalls is never idle: whoever unloaded it would wait for it.
bool Models::idle(const Slot& slot) {
  if (!slot.model || slot.waiting > 0 || slot.model.use_count() > 1) return false;
  return !slot.model->engine || !slot.model->engine->stats().stalled;
}

bool Models::unload_longest_unused(std::unique_lock<std::mutex>& lock) {
  Slot* oldest = nullptr;
  for (const auto& slot : slots_) {
    if (idle(*slot) && (oldest == nullptr || slot->last_used < oldest->last_used)) oldest = slot.get();
  }
  if (oldest == nullptr) return false;
  unload(*oldest, lock, "to make room");
  return true;
}

void Models::unload_idle(std::unique_lock<std::mutex>& lock) {
  for (const auto& slot : slots_) {
    if (!slot->model) continue;
    if (slot->model->in_flight > 0) slot->last_used = Clock::now();
    const std::chrono::duration<double> unused = Clock::now() - slot->last_used;
    if (unused.count() >= options_.idle_unload_seconds && idle(*slot)) unload(*slot, lock, "unused");
  }
}

void Models::unload(Slot& slot, std::unique_lock<std::mutex>& lock, const char* why) {
  std::shared_ptr<ServedModel> model = std::exchange(slot.model, nullptr);
  lock.unlock();
  std::string kept;
  if (!model->cache_file.empty()) {
    auto saved = model->engine->save_cache(model->cache_file);
    if (!saved && saved.error().code == ErrorCode::kStalled) {  // it cannot go
      lock.lock();
      slot.model = std::move(model);
      return;
    }
    kept = saved ? fmt::format("; {} cached tokens kept in {}", *saved, model->cache_file)
                 : "; " + std::move(saved).error().message;
  }
  model.reset();
  notice(fmt::format("{} unloaded, {}{}", slot.options.id, why, kept));
  lock.lock();
}

void Models::notice(const std::string& text) const {
  if (options_.notice) options_.notice(text);
}

}  // namespace hearth::server
