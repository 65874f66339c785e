// The embeddings of some texts. The protocols translate to and from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/protocol.h"

namespace hearth::server {

struct EmbeddingRequest {
  std::vector<std::vector<int32_t>> prompts;
  std::optional<int64_t> dimensions;  // only so many numbers of each, with a length of 1 again; none: all
};

struct Embeddings {
  std::vector<std::vector<float>> vectors;  // in the order of the prompts
  int64_t prompt_tokens = 0;                // of all
};

// Field "dimensions": as many as the model has, or fewer.
std::optional<int64_t> read_dimensions(Fields& fields, const ServedModel& model);

// The tokens of a text. Refuses one without any; `field` is where it was.
Answer<std::vector<int32_t>> embedding_prompt(const std::string& text, const ServedModel& model,
                                              const std::string& field);

// Runs a few of the prompts at a time, for as long as the client is there, and puts their tokens into the request's
// line of the log.
Answer<Embeddings> embed(Exchange& exchange, const std::shared_ptr<ServedModel>& model,
                         const EmbeddingRequest& request);

}  // namespace hearth::server
