// What no protocol has: health, metrics, properties, tokens, the cache, the page.
#include <algorithm>

#include "hearth/version.h"
#include "server/openai.h"
#include "server/page.h"

namespace hearth::server {
namespace {

Answer<void> health(Exchange& exchange, const Models& models) {
  const auto answer = [&](int status, const Json& body) {
    respond_json(exchange, status, body);
    return Answer<void>();
  };
  const std::vector<Models::State> states = models.states();
  // Once the default model was loaded the server serves: a model that is not loaded now will be when it is asked for.
  if (const Models::State& first = states.front(); first.loads == 0) {
    if (first.failure) return answer(503, {{"status", "failed"}, {"message", first.failure->message}});
    exchange.header("Retry-After", "2");
    return answer(503, {{"status", "loading"}, {"progress", first.progress}});
  }
  for (const Models::State& state : states) {
    if (state.model && state.model->engine->stats().stalled) {
      return answer(503, {{"status", "stalled"}, {"model", state.id}});
    }
  }
  return answer(200, {{"status", "ok"}});
}

// What is held in memory to be used again, beside the weights.
struct Memory {
  std::string_view name;
  size_t bytes, limit;
};

std::vector<Memory> memory_of(const ServedModel& model) {
  const TextMemory text = model.text().memory();
  const size_t kv = model.model->info().kv_bytes;
  const EngineStats engine = model.engine->stats();
  return {{"kv", kv, kv},
          {"host_kv", engine.host_bytes_cached, engine.host_bytes_total},
          {"prefix_tree", engine.tree_bytes, engine.tree_bytes},
          {"known_texts", text.known_texts, text.known_texts_limit},
          {"grammars", text.grammars, text.grammars_limit}};
}

std::vector<Memory> memory_of(const Server& server, const ResponseStore& stored) {
  return {{"stored_responses", stored.bytes(), ResponseStore::kMaxBytes},
          {"request_bodies", server.body_bytes(), server.limits().all_body_bytes}};
}

Answer<void> metrics(Exchange& exchange, const Models& models, const Server& server, const ResponseStore& stored) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    text += fmt::format("# HELP hearth_{0} {1}\n# TYPE hearth_{0} {2}\nhearth_{0} {3}\n", name, help, type, value);
  };
  add("connections", "gauge", "Open connections", server.connections());
  const std::vector<Models::State> states = models.states();
  int64_t loaded = 0, loads = 0, in_flight = 0, stalled = 0;
  EngineStats stats;
  for (const Models::State& state : states) {
    loads += state.loads;
    if (!state.model) continue;
    ++loaded;
    in_flight += state.model->in_flight;
    const EngineStats one = state.model->engine->stats();
    stats.active_sequences += one.active_sequences;
    stats.queued_requests += one.queued_requests;
    stats.pages_total += one.pages_total;
    stats.pages_in_use += one.pages_in_use;
    stats.pages_cached += one.pages_cached;
    stats.host_pages_total += one.host_pages_total;
    stats.host_pages_cached += one.host_pages_cached;
    stats.steps += one.steps;
    stats.quiet_seconds = std::max(stats.quiet_seconds, one.quiet_seconds);
    stalled += one.stalled ? 1 : 0;
  }
  const auto sum = [&](std::atomic<int64_t> ModelCounters::*counter) {
    int64_t total = 0;
    for (const Models::State& state : states) total += ((*state.counters).*counter).load();
    return total;
  };
  const auto seconds = [&](std::atomic<int64_t> ModelCounters::*microseconds) {
    return static_cast<double>(sum(microseconds)) / 1e6;
  };
  using C = ModelCounters;
  add("model_ready", "gauge", "1 when the default model is loaded", states.front().model ? 1 : 0);
  add("models_loaded", "gauge", "Models in memory", loaded);
  add("model_loads_total", "counter", "Times that a model was loaded", loads);
  add("answers_in_flight", "gauge", "Answers that run or wait", in_flight);
  add("active_sequences", "gauge", "Sequences in the engines' steps", stats.active_sequences);
  add("queued_requests", "gauge", "Requests that wait in the engines", stats.queued_requests);
  add("pages_total", "gauge", "Pages of KV memory", stats.pages_total);
  add("pages_in_use", "gauge", "Pages of sequences that run", stats.pages_in_use);
  add("pages_cached", "gauge", "Pages that only the prefix cache holds", stats.pages_cached);
  add("host_pages_total", "gauge", "Pages that the prefix caches may have in host memory", stats.host_pages_total);
  add("host_pages_cached", "gauge", "Pages that the prefix caches hold in host memory", stats.host_pages_cached);
  add("steps_total", "counter", "Steps of the engines that are loaded", stats.steps);
  add("quiet_seconds", "gauge", "Longest time that an engine has something to do and got nothing done",
      stats.quiet_seconds);
  add("stalled_models", "gauge", "Models for whose engine that is too long", stalled);
  add("answers_total", "counter", "Answers that ran to their end", sum(&C::answers));
  add("answers_cancelled_total", "counter", "Answers whose client went away", sum(&C::cancelled));
  add("answers_failed_total", "counter", "Answers that failed", sum(&C::failed));
  add("prompt_tokens_total", "counter", "Tokens of prompts", sum(&C::prompt_tokens));
  add("cached_tokens_total", "counter", "Of them, those found in the prefix cache", sum(&C::cached_tokens));
  add("returned_tokens_total", "counter", "Tokens whose keys and values came back from host memory",
      sum(&C::returned_tokens));
  add("generated_tokens_total", "counter", "Tokens of answers", sum(&C::generated_tokens));
  add("queue_seconds_total", "counter", "Time that requests waited", seconds(&C::queue_microseconds));
  add("prefill_seconds_total", "counter", "Time from the first step of a prompt to the first token",
      seconds(&C::prefill_microseconds));
  add("decode_seconds_total", "counter", "Time from the first token to the last", seconds(&C::decode_microseconds));
  std::vector<Memory> memory = memory_of(server, stored);
  for (const Models::State& state : states) {
    if (!state.model) continue;
    for (const Memory& one : memory_of(*state.model)) {
      const auto same = std::ranges::find(memory, one.name, &Memory::name);
      if (same == memory.end()) {
        memory.push_back(one);
      } else {
        same->bytes += one.bytes;
        same->limit += one.limit;
      }
    }
  }
  const auto add_memory = [&](std::string_view name, std::string_view help, size_t Memory::*bytes) {
    text += fmt::format("# HELP hearth_{0} {1}\n# TYPE hearth_{0} gauge\n", name, help);
    for (const Memory& one : memory) text += fmt::format("hearth_{}{{of=\"{}\"}} {}\n", name, one.name, one.*bytes);
  };
  add_memory("memory_bytes", "Memory that is held beside the weights", &Memory::bytes);
  add_memory("memory_limit_bytes", "The most that it may be", &Memory::limit);
  exchange.respond(200, "text/plain; version=0.0.4; charset=utf-8", text);
  return {};
}

Answer<void> props(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models));
  const ModelInfo& info = model->model->info();
  const SamplingOptions& s = info.default_sampling;
  const OutputMarkers& markers = model->text().output_markers();
  respond_json(exchange, 200,
               {{"model", model->id},
                {"model_path", info.path},
                {"model_name", info.name},
                {"architecture", info.architecture},
                {"parameters", info.parameters},
                {"vocab_size", info.vocab_size},
                {"context_tokens", info.sequence_tokens},
                {"kv_tokens", info.context_tokens},
                {"trained_context", info.trained_context},
                {"device", info.device},
                {"threads", info.threads},
                {"max_sequences", model->options.max_sequences},
                {"most_in_flight", model->most_in_flight},
                {"default_sampling",
                 {{"temperature", s.temperature}, {"top_k", s.top_k}, {"top_p", s.top_p}, {"min_p", s.min_p}}},
                {"chat_template", model->text().chat_template()},
                {"thinking_share", kThinkingShare},
                {"supports_thinking", model->text().supports_thinking()},
                {"supports_tools", model->template_shows_tools},
                {"output_dialect", markers.dialect},
                {"build", HEARTH_VERSION}});
  return {};
}

Answer<void> tokenize(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  Fields f(body);
  const auto content = f.text("content");
  const bool add_special = f.boolean("add_special").value_or(false);
  const bool parse_special = f.boolean("parse_special").value_or(true);
  const bool with_pieces = f.boolean("with_pieces").value_or(false);
  if (!content) f.expected("content", "a string");
  if (f.error()) return *f.error();
  HEARTH_ASSIGN(std::vector<int32_t> tokens, model->text().tokenize(*content, parse_special, add_special));
  Json list = Json::array();
  for (int32_t token : tokens) {
    if (with_pieces) {
      list.push_back({{"id", token}, {"piece", model->text().piece(token, true)}});
    } else {
      list.push_back(token);
    }
  }
  respond_json(exchange, 200, {{"tokens", std::move(list)}});
  return {};
}

Answer<void> detokenize(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  Fields f(body);
  const Json* list = f.array("tokens");
  if (list == nullptr) f.expected("tokens", "a list of token ids");
  if (f.error()) return *f.error();
  std::vector<int32_t> tokens;
  for (const Json& id : *list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(model->text().vocab_size())) {
      return invalid("tokens", "tokens: they must be whole numbers from 0 to {}, found {}",
                     model->text().vocab_size() - 1, excerpt(id));
    }
    tokens.push_back(id.get<int32_t>());
  }
  respond_json(exchange, 200, {{"content", model->text().detokenize(tokens, true)}});
  return {};
}

// The prompt that /v1/chat/completions would run.
Answer<void> apply_template(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(ChatRequest chat, read_openai_chat(std::move(body)));
  HEARTH_ASSIGN(Prompt prompt, render_chat(*model, std::move(chat)));
  respond_json(exchange, 200, {{"prompt", prompt.text}, {"tokens", prompt.tokens.size()}});
  return {};
}

// The model of ?model= if it is loaded: one that is not has no cache, and is not loaded for it.
Answer<std::shared_ptr<ServedModel>> loaded_model(Exchange& exchange, const Models& models) {
  const std::string name = in_query(exchange.request(), "model");
  if (!name.empty() && !models.has(name)) {
    return refuse(Refusal::kNotFound, fmt::format("there is no model {}; GET /v1/models lists them", name));
  }
  const Models::State state = models.state(name);
  if (state.model) return state.model;
  return refuse(Refusal::kUnavailable, fmt::format("the model {} is not loaded, and so has no cache", state.id));
}

// Of this model, and of the server for all of them.
Json memory_json(const ServedModel& model, const Server& server, const ResponseStore& stored) {
  std::vector<Memory> memory = memory_of(model);
  std::ranges::copy(memory_of(server, stored), std::back_inserter(memory));
  Json json = Json::object();
  Memory sum{.name = "sum", .bytes = 0, .limit = 0};
  for (const Memory& one : memory) {
    json[one.name] = {{"held", one.bytes}, {"limit", one.limit}};
    sum.bytes += one.bytes;
    sum.limit += one.limit;
  }
  json[sum.name] = {{"held", sum.bytes}, {"limit", sum.limit}};
  return json;
}

Answer<void> cache_state(Exchange& exchange, const Models& models, const Server& server, const ResponseStore& stored) {
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, loaded_model(exchange, models));
  const EngineStats stats = model->engine->stats();
  const ModelCounters& c = *model->counters;
  respond_json(exchange, 200,
               {{"pages_total", stats.pages_total},
                {"pages_in_use", stats.pages_in_use},
                {"pages_cached", stats.pages_cached},
                {"host_pages_total", stats.host_pages_total},
                {"host_pages_cached", stats.host_pages_cached},
                {"active_sequences", stats.active_sequences},
                {"queued_requests", stats.queued_requests},
                {"prompt_tokens", c.prompt_tokens.load()},
                {"cached_tokens", c.cached_tokens.load()},
                {"returned_tokens", c.returned_tokens.load()},
                {"bytes", memory_json(*model, server, stored)}});
  return {};
}

// To the file that the server was started with: where it lies is not the clients' business.
Answer<void> with_cache_file(Exchange& exchange, const Models& models,
                             Result<int64_t> (Engine::*act)(const std::string& path)) {
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, loaded_model(exchange, models));
  if (model->cache_file.empty()) {
    return refuse(Refusal::kInvalid, "the server keeps no cache file; start it with --prompt-cache FILE");
  }
  HEARTH_ASSIGN(const int64_t tokens, (*model->engine.*act)(model->cache_file));
  respond_json(exchange, 200, {{"tokens", tokens}});
  return {};
}

Answer<void> save_cache(Exchange& exchange, const Models& models) {
  return with_cache_file(exchange, models, &Engine::save_cache);
}

Answer<void> restore_cache(Exchange& exchange, const Models& models) {
  return with_cache_file(exchange, models, &Engine::restore_cache);
}

Answer<void> clear_cache(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, loaded_model(exchange, models));
  HEARTH_TRY(model->engine->clear_cache());
  return {};
}

Answer<void> page(Exchange& exchange) {
  exchange.header("Cache-Control", "no-cache");
  exchange.header("X-Content-Type-Options", "nosniff");
  exchange.header("Content-Security-Policy", "frame-ancestors 'none'");
  exchange.respond(200, "text/html; charset=utf-8", chat_page());
  return {};
}

}  // namespace

void add_native(Server& server, Models& models, std::shared_ptr<const ResponseStore> stored) {
  const auto with_models = [&](const char* method, const char* path,
                               Answer<void> (*handler)(Exchange&, const Models&)) {
    server.add({method, path, [&models, handler](Exchange& exchange) { return handler(exchange, models); }});
  };
  for (const char* path : {"/health", "/v1/health"}) {
    server.add({"GET", path, [&models](Exchange& exchange) { return health(exchange, models); }, /*open=*/true});
  }
  server.add({"GET", "/", page, /*open=*/true});
  server.add({"GET", "/index.html", page, /*open=*/true});
  // What clients ask first, to see whether anybody is there.
  server.add({"GET", "/api/hello",
              [](Exchange& exchange) -> Answer<void> {
                respond_json(exchange, 200, {{"status", "ok"}});
                return {};
              },
              /*open=*/true});
  server.add({"GET", "/metrics",
              [&models, &server, stored](Exchange& exchange) { return metrics(exchange, models, server, *stored); }});
  with_models("GET", "/props", props);
  with_models("POST", "/tokenize", tokenize);
  with_models("POST", "/detokenize", detokenize);
  with_models("POST", "/apply-template", apply_template);
  const auto tell_cache = [&models, &server, stored](Exchange& exchange) {
    return cache_state(exchange, models, server, *stored);
  };
  const auto clear = [&models, tell_cache](Exchange& exchange) -> Answer<void> {
    HEARTH_TRY(clear_cache(exchange, models));
    return tell_cache(exchange);
  };
  server.add({"GET", "/v1/cache", tell_cache});
  server.add({"DELETE", "/v1/cache", clear});
  server.add({"POST", "/v1/cache/clear", clear});
  with_models("POST", "/v1/cache/save", save_cache);
  with_models("POST", "/v1/cache/restore", restore_cache);
}

}  // namespace hearth::server
