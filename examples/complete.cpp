// Completes a text with a model: the whole public API in one page.
//   ./complete MODEL.gguf "Once upon a time"
#include <hearth/engine.h>
#include <hearth/model.h>
#include <hearth/text.h>

#include <cstdio>

// Prints the error of a Result and returns 1 from main.
#define OR_FAIL(result)                                             \
  if (!(result)) {                                                  \
    std::fprintf(stderr, "%s\n", (result).error().message.c_str()); \
    return 1;                                                       \
  }

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: complete MODEL.gguf TEXT\n");
    return 2;
  }
  auto model = hearth::Model::open(argv[1], {});
  OR_FAIL(model);
  auto engine = hearth::Engine::create(*model, {});
  OR_FAIL(engine);
  auto tokens = (*model)->text().tokenize(argv[2], /*special=*/false, /*add_special=*/true);
  OR_FAIL(tokens);

  hearth::Request request{.prompt = *tokens, .max_tokens = 64};
  auto generation = (*engine)->submit(std::move(request));
  OR_FAIL(generation);
  while (auto event = generation->next()) {
    if (auto* token = std::get_if<hearth::TokenEvent>(&*event)) std::fputs(token->text.c_str(), stdout);
    if (auto* done = std::get_if<hearth::Done>(&*event)) std::printf("%s\n", done->text.c_str());
    if (auto* failed = std::get_if<hearth::Failed>(&*event)) {
      std::fprintf(stderr, "%s\n", failed->error.message.c_str());
      return 1;
    }
  }
}
