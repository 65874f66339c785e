// What the protocols share: sinks that write to an exchange, and the entry point of each.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "server/chat.h"
#include "server/response_store.h"
#include "server/server.h"

namespace hearth::server {

// A sink over an exchange: notices clients that leave, and keeps those that wait.
class ExchangeSink : public ChatSink {
 public:
  explicit ExchangeSink(Exchange& exchange) : exchange_(exchange) {}
  bool alive() final;
  // The log hears how a long prompt goes on, tell() of everything.
  void event(int64_t answer, const ChatEvent& event) final;

 protected:
  virtual void tell(int64_t answer, const ChatEvent& event) = 0;
  // Writes what the protocol's clients take for life. Called only while an answer is being streamed.
  virtual void keepalive() {}
  Exchange& exchange_;

 private:
  Socket::Clock::time_point logged_ = Socket::Clock::now();
};

// For AnswerLimits::wanted: the client is there. It looks at most every 20 ms.
std::function<bool()> wanted_by(Exchange& exchange);

// Collects all answers of a request that is not streamed.
class WholeSink final : public ExchangeSink {
 public:
  WholeSink(Exchange& exchange, int64_t answers) : ExchangeSink(exchange), answers(static_cast<size_t>(answers)) {}

  std::vector<WholeAnswer> answers;

 protected:
  void tell(int64_t answer, const ChatEvent& event) override { answers[static_cast<size_t>(answer)].add(event); }
};

// Puts model, tokens, times and how it ended into the request's line of the log.
void note_run(Exchange& exchange, const ChatRun& run, const Answer<void>& result);

void respond_json(Exchange& exchange, int status, const Json& body);
// A server-sent event whose name is its "type".
void write_event(Exchange& exchange, const Json& event);
// The body as an object.
Answer<Json> body_of(const Exchange& exchange);

// The model that the request names in its field "model", loaded; waits for that as long as the client does. Its id
// goes into the header X-Hearth-Model.
Answer<std::shared_ptr<ServedModel>> model_for(Exchange& exchange, const Models& models, const Json& body);
// The same for a request that has no body: ?model=NAME.
Answer<std::shared_ptr<ServedModel>> model_for(Exchange& exchange, const Models& models);
// What ?name= has; "" without it.
std::string in_query(const HttpRequest& request, std::string_view name);

// ---- protocols, each in its own file ----

// All of them.
void add_protocols(Server& server, Models& models);

void openai_error(Exchange& exchange, const ApiError& error);
void add_openai_chat(Server& server, Models& models);
void add_openai_completions(Server& server, Models& models);
void add_openai_embeddings(Server& server, Models& models);
void add_openai_models(Server& server, Models& models);
void add_openai_responses(Server& server, Models& models, std::shared_ptr<ResponseStore> store);
void anthropic_error(Exchange& exchange, const ApiError& error);
void add_anthropic(Server& server, Models& models);
void ollama_error(Exchange& exchange, const ApiError& error);
void add_ollama(Server& server, Models& models);
void add_ollama_embeddings(Server& server, Models& models);
void add_llamacpp(Server& server, Models& models);
// `stored`: for what it holds.
void add_native(Server& server, Models& models, std::shared_ptr<const ResponseStore> stored);

}  // namespace hearth::server
