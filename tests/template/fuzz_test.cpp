// Broken and hostile templates: an error or a text within the limits, never a crash or a hang.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "test_files.h"
#include "text/template/chat_template.h"

namespace hearth {
namespace {

RenderLimits small_limits() {
  return {.max_steps = 50'000, .max_output_bytes = 1u << 20, .max_memory_bytes = 8u << 20};
}

std::string mutate(std::string text, const std::vector<std::string>& sources, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const int edits = 1 + static_cast<int>(below(4));
  for (int i = 0; i < edits; ++i) {
    const size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        text.erase(at, below(20));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2: {
        const std::string& other = sources[below(sources.size())];
        const size_t from = below(other.size());
        text.insert(at, other.substr(from, below(60)));
        break;
      }
      case 3: {
        static const char* const kPieces[] = {"{{",
                                              "}}",
                                              "{%",
                                              "%}",
                                              "{#",
                                              "#}",
                                              "-",
                                              "|",
                                              "(",
                                              ")",
                                              "[",
                                              "]",
                                              "'",
                                              "\"",
                                              "loop",
                                              "**",
                                              "//",
                                              " * 9999999",
                                              "namespace",
                                              "range(99999)",
                                              ".append(",
                                              "recursive",
                                              "{% for x in y %}",
                                              "[::-1]",
                                              "~ x ~ x",
                                              "caller()",
                                              "\\u"};
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      }
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      default:
        text.insert(at, text.substr(below(text.size()), below(200)));
    }
  }
  return text;
}

void fuzz(int rounds, uint32_t seed) {
  std::vector<std::string> sources;
  for (const auto& path : real_templates()) sources.push_back(read_file(path));
  const auto golden = read_json("golden.json");
  for (const auto& golden_case : golden["cases"]) sources.push_back(golden_case["template"]);
  const auto conversations = read_json("conversations.json");
  std::vector<nlohmann::ordered_json> contexts;
  for (const char* name : {"parallel_calls", "hard_text", "keys_like_methods"}) contexts.push_back(conversations[name]);
  std::mt19937 random(seed);
  int rendered_count = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string source = mutate(sources[random() % sources.size()], sources, random);
    auto parsed = ChatTemplate::parse(source);
    if (!parsed) {
      EXPECT_NE(parsed.error().message.find("line "), std::string::npos) << parsed.error().message;
      continue;
    }
    TemplateOptions options{
        .bos_token = "<s>", .eos_token = "</s>", .strict_sandbox = i % 2 == 0, .limits = small_limits()};
    auto rendered = parsed->render(contexts[static_cast<size_t>(i) % contexts.size()], options);
    if (rendered) {
      ++rendered_count;
      EXPECT_LE(rendered->text().size(), 1u << 20);
    } else {
      EXPECT_NE(rendered.error().message.find("line "), std::string::npos) << rendered.error().message;
    }
  }
  EXPECT_GT(rendered_count, rounds / 20);
}

TEST(Fuzz, MutatedTemplatesNeverCrash) { fuzz(4000, 1); }
TEST(Fuzz, ManyMutatedTemplatesNeverCrash_slow) { fuzz(100'000, 2); }

// Each of these wants to take all time or memory there is.
TEST(Fuzz, HostileTemplatesMeetALimit) {
  std::string deep_list =
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}";
  const std::string sources[] = {
      "{{ 'x' * 1000000000 }}",
      "{{ [1] * 1000000000 }}",
      "{{ 'x' * (2 ** 100) }}",
      "{{ 2 ** 1000000000000 }}",
      "{{ 7 ** 99999999999 }}",
      "{{ range(100001) }}",
      "{{ range(0, 2 ** 120, 1) }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
      "{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x.replace('', ns.x) %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
      "{{ 'x'.center(10 ** 15) }}",
      "{{ '%99999999s' % 1 }}",
      "{{ '%.99999999f' % 1 }}",
      "{{ ('x' * 1000).join(range(99999)|map('string')|list) }}",
      "{{ (range(99999)|join)|replace('1', 'x' * 10000) }}",
      "{{ [1]|batch(10 ** 18, 0)|list }}",
      "{{ [1]|slice(10 ** 18)|list }}",
      "{{ 'x'|indent(10 ** 18, true) }}",
      deep_list + "{{ ns.x }}",
      deep_list + "{{ ns.x|tojson }}",
      deep_list + "{{ ns.x == [ns.x] }}",
      "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}",
      "{% set l = [1] %}{% for x in l %}{{ l.append(x) }}{% endfor %}",
      "{% set l = [1] %}{{ l.append(l) }}",
      "{% set d = {} %}{{ d.update({'d': d}) }}",
      "{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}",
      "{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}",
      "{{ " + std::string(100'000, '[') + " }}",
      "{{ 1" +
          [] {
            std::string s;
            for (int i = 0; i < 100'000; ++i) s += "+1";
            return s;
          }() +
          " }}",
      "{{ x" +
          [] {
            std::string s;
            for (int i = 0; i < 100'000; ++i) s += "|e";
            return s;
          }() +
          " }}",
      "{{ x" +
          [] {
            std::string s;
            for (int i = 0; i < 100'000; ++i) s += ".a";
            return s;
          }() +
          " }}",
      "{{ 1" +
          [] {
            std::string s;
            for (int i = 0; i < 100'000; ++i) s += " if 1";
            return s;
          }() +
          " }}",
      "{{ " +
          [] {
            std::string s;
            for (int i = 0; i < 100'000; ++i) s += "not ";
            return s;
          }() +
          "1 }}",
      "{{ " + std::string(100'000, '-') + "1 }}",
      [] {
        std::string s;
        for (int i = 0; i < 50'000; ++i) s += "{% if 1 %}";
        return s;
      }(),
      [] {
        std::string s;
        for (int i = 0; i < 50'000; ++i) s += "{% for x in y %}";
        return s;
      }(),
      "{% set " + std::string(100'000, '(') + "a = 1 %}",
      std::string((1 << 20) + 1, 'x'),
      "{% set ns = namespace() %}{% for x in [1] recursive %}{% set ns.l = loop %}{% endfor %}{{ ns.l([2]) }}",
  };
  for (const std::string& source : sources) {
    const auto start = std::chrono::steady_clock::now();
    auto parsed = ChatTemplate::parse(source);
    const std::string shown = source.substr(0, 100);
    if (parsed) {
      auto rendered = parsed->render(nlohmann::ordered_json::object(), {.limits = {.max_steps = 2'000'000}});
      EXPECT_FALSE(rendered.has_value()) << shown;
      if (!rendered) {
        EXPECT_NE(rendered.error().message.find("line "), std::string::npos) << shown << rendered.error().message;
      }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 20) << shown;
  }
}

TEST(Fuzz, ValuesMayReferToThemselves) {
  auto parsed =
      ChatTemplate::parse("{% set ns = namespace() %}{% set ns.me = ns %}{% set l = [ns] %}{% set ns.l = l %}ok");
  ASSERT_TRUE(parsed);
  auto rendered = parsed->render(nlohmann::ordered_json::object(), {});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->text(), "ok");
}

}  // namespace
}  // namespace hearth
