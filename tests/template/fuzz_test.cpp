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

// Each step of these touches much text or many names: a limit on steps is none unless they count.
TEST(Fuzz, StepsCountWhatTheyTouch) {
  const auto repeated = [](int count, auto piece) {
    std::string text;
    for (int i = 0; i < count; ++i) text += piece(i);
    return text;
  };
  const std::string texts =
      "{% set s = 'a' * 2000000 %}{% set near = 'a' * 1000000 ~ 'b' %}{% set far = 'b' ~ 'a' * 1000000 %}"
      "{% set open = '<!--' * 300000 %}{% set dots = 'me.' * 500000 ~ 'me' %}{% set many = [1] * 1000000 %}"
      "{% set ns = namespace(n=0) %}{% set ns.me = ns %}";
  const std::string expressions[] = {
      "near in s",
      "s.find(near)",
      "s.rfind(far)",
      "s.count(near)",
      "s.replace(near, '')",
      "s|replace(near, '')",
      "s.split(near)",
      "s.rsplit(far)",
      "s.rsplit('a')",
      "s.partition(near)",
      "s.rpartition(far)",
      "s.startswith(s)",
      "s.endswith(s)",
      "s.removeprefix(s)",
      "s.strip(near)",
      "s.isalpha()",
      "s.islower()",
      "s is lower",
      "s[0:1]",
      "s.center(3)",
      "'%s%s%s%s' % (s, s, s, s)",
      "'{0}{0}{0}{0}'.format(s)",
      "{s: 1}[s]",
      "{}.get(s)",
      "{(s,) * 1000: 1}",
      "{s: 1}|tojson",
      "[1, 2, 3]|tojson(indent=s)",
      "[1, 2, 3]|tojson(separators=[s, s])",
      "open|striptags",
      "[ns]|map(attribute=dots)|list",
      "many|map('default', *many)|list",
      "many|select('divisibleby', *many)|list",
      "s|int",
      "s|float",
  };
  std::vector<std::string> sources;
  for (const std::string& expression : expressions) {
    // The length keeps the value from becoming output, which has a limit of its own.
    sources.push_back(texts + "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = (" + expression +
                      ")|string|length %}{% endfor %}{% endfor %}");
  }
  const std::string loop = "{% for i in range(99999) %}{% for j in range(99999) %}";
  const auto name = [](int i) { return "v" + std::to_string(100'000 + i); };
  sources.push_back(repeated(20'000, [&](int i) { return "{% set " + name(i) + " = 1 %}"; }) + loop +
                    "{% set x = " + name(19'999) + " %}{% endfor %}{% endfor %}");
  sources.push_back("{% macro m(" + repeated(50'000, [&](int i) { return name(i) + "=1,"; }) +
                    "last=1) %}{% endmacro %}" + loop + "{% set x = m() %}{% endfor %}{% endfor %}");
  sources.push_back("{% set ns = namespace(" + repeated(50'000, [&](int i) { return name(i) + "=1,"; }) + "last=1) %}" +
                    loop + "{% set x = ns.last %}{% endfor %}{% endfor %}");
  sources.push_back("{% set o = {'x': 1} %}" + loop + "{% set x = o." + std::string(500'000, 'x') +
                    " %}{% endfor %}{% endfor %}");
  for (const std::string& source : sources) {
    const std::string shown = source.substr(0, 40) + " ... " + source.substr(source.size() - 100);
    auto parsed = ChatTemplate::parse(source);
    ASSERT_TRUE(parsed) << shown << parsed.error().message;
    const auto start = std::chrono::steady_clock::now();
    auto rendered = parsed->render(nlohmann::ordered_json::object(), {.limits = {.max_steps = 300'000}});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_FALSE(rendered.has_value()) << shown;
    EXPECT_LT(seconds.count(), 10) << shown;
    if (rendered) continue;
    EXPECT_LT(rendered.error().message.size(), 2200u) << shown;
  }
}

TEST(Fuzz, MessagesAreShort) {
  auto parsed = ChatTemplate::parse("{{ raise_exception('\xC3\xA4' * 1000000) }}");
  ASSERT_TRUE(parsed);
  auto rendered = parsed->render(nlohmann::ordered_json::object(), {});
  ASSERT_FALSE(rendered);
  EXPECT_LT(rendered.error().message.size(), 2200u);
  EXPECT_TRUE(rendered.error().message.ends_with("\xC3\xA4 ..."));
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
