// POST /v1/embeddings: a vector for each text.
#include <bit>
#include <span>

#include "server/embeddings.h"
#include "server/openai.h"

namespace hearth::server {
namespace {

constexpr size_t kMaxInputs = 2048;  // the protocol's

static_assert(std::endian::native == std::endian::little, "base64 has the bytes of little-endian floats");

std::string base64(std::span<const float> values) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::span<const std::byte> bytes = std::as_bytes(values);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? std::to_integer<uint32_t>(bytes[at + i]) : 0);
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit <= count ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

Answer<void> answer_embeddings(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(const Json body, body_of(exchange));
  HEARTH_ASSIGN(const std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  EmbeddingRequest request;
  Fields f(body);
  const std::string format = f.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") f.expected("encoding_format", "float or base64");
  request.dimensions = read_dimensions(f, *model);
  if (f.error()) return *f.error();
  HEARTH_ASSIGN(const std::vector<const Json*> inputs, read_inputs(body, "input", kMaxInputs));
  for (const Json* input : inputs) {
    std::vector<int32_t> tokens;
    if (input->is_string()) {
      HEARTH_ASSIGN(tokens, embedding_prompt(input->get<std::string>(), *model, "input"));
    } else {
      HEARTH_ASSIGN(tokens, read_tokens(*input, "input", model->text()));
      if (tokens.empty()) return invalid("input", "input: a list of token ids is empty");
    }
    HEARTH_TRY(check_length(std::ssize(tokens), /*max_tokens=*/0, *model, "input"));
    request.prompts.push_back(std::move(tokens));
  }
  HEARTH_ASSIGN(const Embeddings embeddings, embed(exchange, model, request));
  Json data = Json::array();
  for (const std::vector<float>& vector : embeddings.vectors) {
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", format == "base64" ? Json(base64(vector)) : Json(vector)}});
  }
  respond_json(exchange, 200,
               {{"object", "list"},
                {"data", std::move(data)},
                {"model", model->id},
                {"usage", {{"prompt_tokens", embeddings.prompt_tokens}, {"total_tokens", embeddings.prompt_tokens}}}});
  return {};
}

}  // namespace

void add_openai_embeddings(Server& server, Models& models) {
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    server.add({"POST", path, [&models](Exchange& exchange) { return answer_embeddings(exchange, models); }});
  }
}

}  // namespace hearth::server
