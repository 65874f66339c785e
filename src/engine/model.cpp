#include "hearth/model.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <utility>

#include "backends/backend.h"
#include "base/checked_math.h"
#include "base/hash.h"
#include "engine/default_sampling.h"
#include "engine/device_check.h"
#include "engine/embedding.h"
#include "engine/engine.h"
#include "engine/text.h"
#include "files/gguf.h"
#include "graph/passes.h"
#include "memory/budget.h"
#include "memory/host_memory.h"
#include "memory/kv_cache.h"
#include "models/family.h"
#include "plan/plan.h"

namespace hearth {

struct Model::Impl {
  explicit Impl(Catalog c) : catalog(std::move(c)) {}
  static Result<std::shared_ptr<Model>> open(const std::string& path, const ModelOptions& options);

  Catalog catalog;
  ModelGraph model;  // its graph points into the catalog
  std::unique_ptr<const Text> text;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<DeviceModel> device;
  KvType kv_type = KvType::kF16;
  std::vector<int64_t> kv_pages;  // [KV group]
  int64_t sequence_tokens = 0;
  Pooling pooling = Pooling::kLast;
  std::string identity;
  ModelInfo info;
  std::atomic<bool> has_engine{false};
};

namespace {

// What takes the first that can run the model.
constexpr std::string_view kAutomatic = "auto";

// The program, its libraries and small tables, in the host's memory.
constexpr size_t kProgramBytes = size_t{64} << 20;

// A model of so many bytes is loaded within a second.
constexpr size_t kLoadsFastBytes = size_t{1} << 30;

template <class T>
struct Named {
  const char* name;
  T value;
};

template <class T, size_t N>
std::vector<std::string_view> names_in(const Named<T> (&names)[N]) {
  std::vector<std::string_view> list;
  for (const Named<T>& named : names) list.push_back(named.name);
  return list;
}

template <class T, size_t N>
Result<T> parse_name(std::string_view option, std::string_view text, const Named<T> (&names)[N]) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
  }
  return fail(ErrorCode::kUsage, "{} is \"{}\"; it must be one of {}", option, text, known);
}

constexpr Named<KvType> kKvTypes[] = {{"f32", KvType::kF32}, {"f16", KvType::kF16}, {"q8", KvType::kQ8}};
constexpr Named<Activations> kActivations[] = {{"default", Activations::kDefault}, {"int8", Activations::kInt8}};
constexpr Named<WeightLayout> kLayouts[] = {
    {"auto", WeightLayout::kAuto}, {"native", WeightLayout::kNative}, {"planar", WeightLayout::kPlanar}};

// Pages of a group for so many tokens of context. A group with a window gets what four sequences can see at most, if
// that is less: a longer context costs it nothing.
int64_t group_pages(const KvGroup& group, int64_t context_tokens) {
  const int64_t rows = kPrefillGrid + kPrefillRows[std::size(kPrefillRows) - 1];
  return std::min(ceil_div(context_tokens, kPageTokens),
                  4 * pages_needed(context_tokens, group.window, rows, kPageTokens));
}

size_t kv_bytes(const Backend& backend, const Graph& graph, KvType type, int64_t context_tokens) {
  size_t bytes = 0;
  for (const KvGroup& group : graph.kv_groups) {
    bytes += static_cast<size_t>(group_pages(group, context_tokens)) * backend.page_bytes(group, type);
  }
  return bytes;
}

// The largest plans that an engine records; the others fit into their memory.
std::vector<Bucket> largest_buckets() {
  return {bucket_for(PlanKind::kPrefill, EngineOptions{}.prefill_rows), {PlanKind::kDecode, std::end(kDecodeRows)[-1]}};
}

// Bytes of the weights that every token reads. A table that is only gathered is not read.
size_t bytes_per_token(const Graph& graph) {
  std::set<const TensorEntry*> read;
  for (const Node& node : graph.nodes) {
    for_each_weight(node.op, [&](WeightId id, WeightUse use) {
      if (use != WeightUse::kGathered) read.insert(graph.weight(id).tensor);
    });
  }
  size_t bytes = 0;
  for (const TensorEntry* tensor : read) bytes += tensor->bytes.size();
  return bytes;
}

// Some product with the graph's weights is another one with 8-bit activations.
bool takes_int8(const Backend& backend, const Graph& graph) {
  bool any = false;
  for (const Node& node : graph.nodes) {
    for_each_weight(node.op, [&](WeightId id, WeightUse use) {
      any |= use == WeightUse::kMatrix && backend.takes_int8(graph.weight(id).tensor->format);
    });
  }
  return any;
}

ModelInfo describe(const Catalog& catalog, const ModelGraph& model, const Backend& backend, const std::string& path) {
  const DeviceInfo& device = backend.info();
  ModelInfo info{.path = path,
                 .architecture = model.architecture,
                 .device = device.name + (device.description.empty() ? "" : ": " + device.description),
                 .threads = device.workers,
                 .vocab_size = model.vocab_size,
                 .embedding_width = model.graph.hidden ? model.graph.value(model.graph.hidden->value).cols : 0,
                 .makes_embeddings = catalog.metadata().contains(pooling_key(model.architecture)),
                 .trained_context = model.context_length,
                 .file_bytes = catalog.total_bytes(),
                 .bytes_per_token = bytes_per_token(model.graph),
                 .default_sampling = default_sampling(catalog.metadata())};
  const auto name = catalog.metadata().string("general.name");
  info.name = name ? std::string(*name) : path.substr(path.rfind('/') + 1);
  for (const TensorEntry& tensor : catalog.tensors()) info.parameters += tensor.elements();
  return info;
}

// Of what a KV page's content depends on beside the tokens: two models with the same identity have the same weights, as
// far as their shapes and a sample of their bytes tell.
std::string identity_of(const Catalog& catalog, const Backend& backend, std::string_view kv_type) {
  Hasher hash;
  for (const TensorEntry& tensor : catalog.tensors()) {
    hash.add(std::as_bytes(std::span(tensor.name)));
    hash.add(std::as_bytes(std::span(tensor.shape)));
    hash.add(std::as_bytes(std::span(&tensor.format, 1)));
    const size_t sample = std::min<size_t>(tensor.bytes.size(), 256);
    hash.add(tensor.bytes.subspan((tensor.bytes.size() - sample) / 2, sample));
  }
  return fmt::format("{} {} {:016x}", backend.info().name, kv_type, hash.value());
}

}  // namespace

const OptionNames& option_names() {
  static const OptionNames kNames = [] {
    OptionNames names{.devices = backend_names(),
                      .isas = cpu_isa_names(),
                      .kv_types = names_in(kKvTypes),
                      .activations = names_in(kActivations),
                      .layouts = names_in(kLayouts),
                      .passes = {"all"}};
    names.devices.insert(names.devices.begin(), kAutomatic);
    for (const Pass& pass : all_passes()) names.passes.push_back(pass.name);
    return names;
  }();
  return kNames;
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }
const Text& Model::text() const { return *impl_->text; }

size_t Model::kv_bytes_read(int64_t position) const {
  size_t bytes = 0;
  for (const KvGroup& group : impl_->model.graph.kv_groups) {
    const int64_t seen = group.window > 0 ? std::min(position + 1, group.window) : position + 1;
    bytes += impl_->backend->page_bytes(group, impl_->kv_type) / kPageTokens * static_cast<size_t>(seen);
  }
  return bytes;
}

Result<std::shared_ptr<Model>> Model::open(const std::string& path, const ModelOptions& options) {
  return guarded(path, [&] { return Impl::open(path, options); });
}

Result<std::shared_ptr<Model>> Model::Impl::open(const std::string& path, const ModelOptions& options) {
  HEARTH_ASSIGN(const KvType kv_type, parse_name("kv_type", options.kv_type, kKvTypes));
  HEARTH_ASSIGN(const Activations activations, parse_name("activations", options.activations, kActivations));
  HEARTH_ASSIGN(const WeightLayout layout, parse_name("layout", options.layout, kLayouts));
  if (options.context_tokens < 0 || options.context_tokens > kMaxContextTokens) {
    return fail(ErrorCode::kUsage, "context_tokens is {}; it must be from 1 to {}, or 0 to let Hearth decide",
                options.context_tokens, kMaxContextTokens);
  }
  // Automatic: the GPU first, and the CPU where the model cannot run there. Instructions are the CPU's.
  const bool automatic = options.device == kAutomatic && options.isa.empty();
  const std::string device = automatic ? "cuda" : options.device == kAutomatic ? "cpu" : options.device;
  const BackendOptions backend_options{.threads = options.threads, .isa = options.isa};
  Result<std::unique_ptr<Backend>> backend = make_backend(device, backend_options);
  if (!backend && !automatic) return std::move(backend).error();
  HEARTH_ASSIGN(Catalog catalog, open_gguf(path));
  auto impl = std::make_unique<Impl>(std::move(catalog));
  impl->kv_type = kv_type;
  const auto load = [&]() -> Result<void> {
    Impl& m = *impl;
    // On a thread of its own if there is one: building a tokenizer takes as long as loading a small model.
    auto text = std::async([&] { return make_text(m.catalog.metadata(), options.chat_template); });
    const auto finish_text = [&]() -> Result<void> {
      HEARTH_ASSIGN(m.text, text.get());
      if (m.text->vocab_size() <= m.model.vocab_size) return {};
      return fail(ErrorCode::kInvalidInput, "the vocabulary has {} tokens, but the model computes logits of {}",
                  m.text->vocab_size(), m.model.vocab_size);
    };
    HEARTH_ASSIGN(m.model, build_graph(m.catalog));
    HEARTH_ASSIGN(m.pooling, read_pooling(m.catalog.metadata(), m.model.architecture));
    HEARTH_TRY(run_passes(m.model.graph, options.disabled_passes));
    const Graph& graph = m.model.graph;
    // A long load must not end in an error that could have been known before it.
    const bool loads_fast = m.catalog.total_bytes() <= kLoadsFastBytes;
    if (!loads_fast) HEARTH_TRY(finish_text());

    Budget budget;
    const auto load_on = [&](std::unique_ptr<Backend> device) -> Result<void> {
      m.backend = std::move(device);
      const std::optional<size_t> device_memory = m.backend->available_bytes();
      const HostMemory host = host_memory();
      const HostMemory memory = device_memory ? HostMemory{.available_bytes = *device_memory} : host;
      size_t host_cache = options.host_cache_bytes.value_or(0);
      if (device_memory) {
        HEARTH_ASSIGN(host_cache, plan_host_cache(options.host_cache_bytes, host));
      }
      LoadOptions load_options{.kv_type = kv_type,
                               .activations = activations,
                               .layout = layout,
                               .progress = options.progress,
                               .release = [&m](const TensorEntry& t) { m.catalog.release(t); }};
      HEARTH_ASSIGN(const size_t plans, m.backend->workspace_bytes(graph, load_options, largest_buckets()));
      // In host memory, repacked copies take the place of the file's pages, which are released.
      const size_t in_host = device_memory ? 0 : m.catalog.total_bytes();
      BudgetRequest request{.weights_bytes = std::max(in_host, m.backend->weight_bytes(graph, layout)),
                            .workspace_bytes = plans + (device_memory ? 0 : kProgramBytes),
                            .cache_bytes = device_memory ? 0 : host_cache,
                            .kv_bytes = [&](int64_t tokens) { return kv_bytes(*m.backend, graph, kv_type, tokens); },
                            .context_tokens = options.context_tokens,
                            .trained_context = m.model.context_length,
                            .granularity = kPageTokens,
                            .available_bytes = memory.available_bytes,
                            .limited = memory.limited,
                            .device = device_memory ? m.backend->info().name : ""};
      if (kv_type != KvType::kQ8) {
        request.small_kv_bytes = [&](int64_t tokens) { return kv_bytes(*m.backend, graph, KvType::kQ8, tokens); };
      }
      HEARTH_ASSIGN(budget, plan_budget(request));
      for (const KvGroup& group : graph.kv_groups) {
        load_options.kv_pages.push_back(group_pages(group, budget.context_tokens));
      }
      m.kv_pages = load_options.kv_pages;
      m.info.host_cache_bytes = host_cache;
      HEARTH_ASSIGN(m.device, m.backend->load(graph, load_options));
      return {};
    };

    std::vector<std::string> notes;
    Result<void> loaded = backend ? load_on(std::move(*backend)) : Result<void>(backend.error());
    // Neither a GPU nor a failing driver of one: nothing was left to choose.
    const bool no_gpu = !backend && backend.error().code == ErrorCode::kNotFound;
    const auto cannot = [&](const Error& error) {  // the device, not the file or the options
      return no_gpu || error.code == ErrorCode::kOutOfMemory || error.code == ErrorCode::kUnsupported ||
             error.code == ErrorCode::kInternal;
    };
    if (automatic && loaded) {
      notes.push_back(fmt::format("the model runs on {}: {}; --device cpu would use the processor",
                                  m.backend->info().name, m.backend->info().description));
    } else if (automatic && cannot(loaded.error())) {
      if (!no_gpu) {
        notes.push_back(fmt::format("the model runs on the CPU: {}", without_advice(loaded.error().message)));
      }
      HEARTH_ASSIGN(auto cpu, make_backend("cpu", backend_options));
      loaded = load_on(std::move(cpu));
    }
    HEARTH_TRY(std::move(loaded));
    m.sequence_tokens = budget.context_tokens;
    if (m.model.context_length > 0) m.sequence_tokens = std::min(m.sequence_tokens, m.model.context_length);
    if (loads_fast) HEARTH_TRY(finish_text());
    const size_t host_cache = m.info.host_cache_bytes;
    m.info = describe(m.catalog, m.model, *m.backend, path);
    m.info.host_cache_bytes = host_cache;
    const bool int8 = activations == Activations::kInt8 && takes_int8(*m.backend, graph);
    if (activations == Activations::kInt8 && !int8) {
      notes.push_back(fmt::format("int8 activations change nothing: {} has no products of them with these weights",
                                  m.backend->info().name));
    }
    m.info.activations = int8 ? "int8" : "default";
    m.info.notes = std::move(notes);
    m.info.context_tokens = budget.context_tokens;
    m.info.sequence_tokens = m.sequence_tokens;
    m.info.kv_bytes = budget.kv_bytes;
    m.identity = identity_of(m.catalog, *m.backend, options.kv_type);
    return {};
  };
  if (auto loaded = load(); !loaded) return std::move(loaded).error().with_context(path);
  return std::shared_ptr<Model>(new Model(std::move(impl)));
}

Result<double> Model::read_bandwidth(double seconds) {
  return guarded("measure memory", [&] { return impl_->backend->read_bandwidth(seconds); });
}

Result<double> Model::check_device() {
  Impl& m = *impl_;
  return guarded("check the device", [&]() -> Result<double> {
    if (m.has_engine.exchange(true)) {
      return fail(ErrorCode::kUsage, "cannot check the device of {}: an engine uses it", m.info.path);
    }
    const std::shared_ptr<void> keep(&m, [](void* impl) { static_cast<Impl*>(impl)->has_engine = false; });
    HEARTH_ASSIGN(auto backend, make_backend("reference", {}));
    LoadOptions options{.kv_type = KvType::kF32, .kv_pages = std::vector<int64_t>(m.kv_pages.size(), 1)};
    HEARTH_ASSIGN(auto reference, backend->load(m.model.graph, options));
    return device_divergence(m.model.graph, *reference, *m.device);
  });
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<Model> model, const EngineOptions& options) {
  Model::Impl& m = model->impl();
  if (m.has_engine.exchange(true)) {
    return fail(ErrorCode::kUsage, "start an engine for {}: the model has one already, and its KV belongs to that one",
                m.info.path);
  }
  // The flag falls when the engine is gone.
  std::shared_ptr<void> keep(&m, [model](void*) { model->impl().has_engine = false; });
  return make_engine({.graph = &m.model.graph,
                      .device = m.device.get(),
                      .text = m.text.get(),
                      .kv_pages = m.kv_pages,
                      .host_cache_bytes = m.info.host_cache_bytes,
                      .vocab_size = m.model.vocab_size,
                      .sequence_tokens = m.sequence_tokens,
                      .pooling = m.pooling,
                      .identity = m.identity},
                     options, std::move(keep));
}

}  // namespace hearth
