// Damaged model files are loaded and asked for one token: each ends in an answer or in an error, never in a crash.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../files/gguf_cases.h"
#include "hearth/engine.h"

namespace hearth {
namespace {

std::vector<std::string> golden_models() {
  std::vector<std::string> models;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_TEST_DATA "/golden")) {
    if (entry.path().extension() != ".gguf") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    models.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return models;
}

// Loads the file and decodes one token. True if there was an answer.
bool ask(const std::string& path) {
  ModelOptions options{.threads = 1, .context_tokens = 64};
  Result<std::shared_ptr<Model>> model = Model::open(path, options);
  if (!model) {
    EXPECT_FALSE(model.error().message.empty());
    EXPECT_NE(model.error().code, ErrorCode::kInternal) << model.error().message;
    return false;
  }
  Result<std::unique_ptr<Engine>> engine = Engine::create(*model, {.max_sequences = 1, .prefill_rows = 16});
  if (!engine) return false;
  Result<Generation> generation = (*engine)->submit({.prompt = {1, 2, 3}, .max_tokens = 1});
  if (!generation) return false;
  bool answered = false;
  while (std::optional<Event> event = generation->next()) answered |= std::holds_alternative<TokenEvent>(*event);
  return answered;
}

// Most of a model file is weights, where an edit changes the answer only: half of the mutants are edited in the
// metadata and the tensor table alone.
void run(int count, uint64_t seed) {
  std::vector<std::string> models = golden_models();
  ASSERT_FALSE(models.empty());
  std::mt19937_64 rng(seed);
  auto path = std::filesystem::temp_directory_path() / ("hearth_mutant_" + std::to_string(::getpid()) + ".gguf");
  int answered = 0;
  for (int i = 0; i < count; ++i) {
    const std::string& model = models[rng() % models.size()];
    std::string mutant = model;
    if (rng() % 2) {
      size_t head = std::min<size_t>(model.size(), 12000);
      mutant = mutate(model.substr(0, head), models, rng) + model.substr(head);
    } else {
      mutant = mutate(mutant, models, rng);
    }
    std::ofstream(path, std::ios::binary) << mutant;
    answered += ask(path);
  }
  std::filesystem::remove(path);
  std::printf("%d of %d mutants still answered\n", answered, count);
  EXPECT_GT(answered, 0) << "every mutant was refused: the mutations are too coarse to reach the engine";
  EXPECT_LT(answered, count);
}

TEST(Mutants, AFewAreLoadedAndAsked) { run(100, 1); }
TEST(Mutants, TwoThousandAreLoadedAndAsked_slow) { run(2000, 2); }

}  // namespace
}  // namespace hearth
