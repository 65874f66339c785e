#include "grammar_support.h"

namespace hearth {
namespace {

constexpr auto kSchema = GrammarSource::Kind::kJsonSchema;

struct Case {
  std::string schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto grammar = compiled(kSchema, c.schema);
    ASSERT_TRUE(grammar);
    for (const std::string& text : c.good) {
      EXPECT_TRUE(matches(grammar, text))
          << c.schema << "\nshould take " << text.substr(0, 200) << "\nstops at byte " << fitting(grammar, text);
    }
    for (const std::string& text : c.bad) {
      EXPECT_FALSE(matches(grammar, text)) << c.schema << "\nshould refuse " << text.substr(0, 200);
    }
  }
}

TEST(JsonSchema, PlainTypes) {
  check({
      {R"({"type":"string"})",
       {R"("")", R"("a b")", R"("\n\"\\\/\u00e9\u20AC")", "\"\u00e9\u20ac\U0001F600\""},
       {"", "\"", "a", "\"a\nb\"", R"("\x")", R"("\u12")", R"("\ud83d\ude00")", R"("\uD800")", "\"\xff\"", "1"}},
      {R"({"type":"integer"})", {"0", "-5", "1234567890"}, {"", "-", "01", "1.0", "1e3", "+1", "\"1\""}},
      {R"({"type":"number"})", {"0", "-0.5", "1e5", "2.5E-3", "10"}, {".5", "1.", "01", "1e", "--1", "NaN"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"True", "tru", "null", "1"}},
      {R"({"type":"null"})", {"null"}, {"nul", "\"null\""}},
      {R"({"type":["string","null"]})", {"\"a\"", "null"}, {"1", "true"}},
      {R"({"type":"string","nullable":true})", {"\"a\"", "null"}, {"1"}},
      {"true",
       {"1", "{}", "[1, {\"a\": null}]", "{\"a\":{\"b\":[]}}", "[\n  1,\n  2\n]"},
       {"", "[1,]", "{a:1}", "{\"a\"}"}},
      {"{}", {"null", "\"x\""}, {"x"}},
      {R"({"type":"object"})",
       {"{}", "{\"a\": 1}", "{\n  \"a\": 1,\n  \"b\": [true]\n}"},
       {"[]", "{\"a\": 1,}", "{\"a\" 1}"}},
      {R"({"type":"array"})", {"[]", "[1, \"a\", null]"}, {"{}", "[1 2]"}},
  });
}

TEST(JsonSchema, WhiteSpaceEnds) {
  const auto grammar = compiled(kSchema, R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})");
  EXPECT_TRUE(matches(grammar, "{\"a\":1}"));
  EXPECT_TRUE(matches(grammar, "\n\n{ \"a\": 1 }"));
  EXPECT_TRUE(matches(grammar, "{\n\t\"a\": 1\n}"));
  EXPECT_LT(fitting(grammar, "{" + std::string(1000, ' ')), 100u);
  EXPECT_LT(fitting(grammar, "{" + std::string(1000, '\n')), 10u);
  EXPECT_LT(fitting(grammar, std::string(1000, '\n')), 10u);
  EXPECT_LT(fitting(grammar, "{\"a\": " + std::string(1000, '1')), 40u);
}

TEST(JsonSchema, Strings) {
  const std::string long_text(100000, 'x');
  check({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("abc")", "\"\u20ac\U0001F600\"", R"("\n\u00e9x")"},
       {R"("a")", R"("abcd")", R"("")", "\"\u20ac\""}},
      {R"({"type":"string","maxLength":100000})", {R"("")", "\"" + long_text + "\""}, {"\"x" + long_text + "\""}},
      {R"({"type":"string","minLength":1})", {R"("a")", "\"" + long_text + "\""}, {R"("")"}},
      {R"({"type":"string","minLength":99999,"maxLength":100000})", {"\"" + long_text + "\""}, {R"("x")"}},
      {R"({"type":"string","pattern":"^[a-z]{2,4}-\\d+$"})",
       {R"("ab-1")", R"("abcd-123")"},
       {R"("a-1")", R"("ab-")", R"("xab-1 ")"}},
      {R"({"type":"string","pattern":"b+"})", {R"("b")", R"("abbbc")", R"("\nb")"}, {R"("")", R"("ac")"}},
      {R"({"type":"string","pattern":"^a|b$"})", {R"("a")", R"("axx")", R"("xb")"}, {R"("xa")", R"("bx")"}},
      {R"({"type":"string","pattern":"^(foo|ba[rz])?$"})", {R"("")", R"("foo")", R"("baz")"}, {R"("fo")", R"("bax")"}},
      {R"({"type":"string","pattern":"^[^x]$"})",
       {R"("a")", R"("\"")", R"("\\")", R"("\n")"},
       {R"("x")", R"(""")", R"("\")"}},
      {R"({"type":"string","pattern":"^.\\.\\$\\u0041$"})", {R"("x.$A")"}, {R"("xx$A")"}},
      {R"({"type":"string","pattern":"^[a-zA-Z0-9_-]+$","maxLength":3})",
       {R"("a")", R"("a_-")"},
       {R"("")", R"("abcd")", R"("a b")"}},
      {R"({"type":"string","pattern":"^[ab]{1,90000}$"})", {R"("abab")"}, {R"("")", R"("abc")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-28")", R"("1999-12-31")"},
       {R"("2024-13-01")", R"("2024-02-30")", R"("24-01-01")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("2024-02-28T23:59:59Z")", R"("2024-02-28T00:00:00.5+02:00")"},
       {R"("2024-02-28")", R"("2024-02-28T24:00:00Z")"}},
      {R"({"type":"string","format":"uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123e4567")"}},
      {R"({"type":"string","format":"email"})", {R"("a.b@example.org")"}, {R"("a@b")", R"("@b.c")"}},
      {R"({"type":"string","format":"ipv4"})", {R"("192.168.0.255")"}, {R"("256.1.1.1")", R"("1.2.3")"}},
      {R"({"type":"string","format":"x-own"})", {R"("anything")"}, {"1"}},
  });
}

TEST(JsonSchema, Numbers) {
  check({
      {R"({"type":"integer","minimum":0})", {"0", "7", "123456789"}, {"-1", "-0", "1.5"}},
      {R"({"type":"integer","minimum":-12,"maximum":105})",
       {"-12", "-9", "-1", "0", "9", "10", "99", "100", "105"},
       {"-13", "-20", "106", "110", "200", "1000", "01", "-0"}},
      {R"({"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10})", {"1", "9"}, {"0", "10"}},
      {R"({"type":"integer","minimum":0,"exclusiveMinimum":true})", {"1"}, {"0"}},
      {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
      {R"({"type":"integer","minimum":9223372036854775000,"maximum":9223372036854775807})",
       {"9223372036854775001"},
       {"9223372036854774999", "1"}},
      {R"({"type":"integer","maximum":-5})", {"-5", "-10", "-99"}, {"-4", "0", "5"}},
      {R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.5", "1.0", "0.0"}, {"1.01", "-0.5", "2", "10"}},
      {R"({"type":"number","minimum":0})", {"0", "0.25", "17.5"}, {"-1", "-0.1"}},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":0.5})",
       {"0.1", "0.5", "0.50", "0.001"},
       {"0", "0.0", "0.51", "0.6", "1"}},
      {R"({"type":"number","minimum":-1.25,"exclusiveMaximum":2.5})",
       {"-1.25", "-1.2", "-1", "-0.3", "0", "2.4", "2.49", "2"},
       {"-1.26", "-1.3", "-2", "2.5", "2.50", "2.51", "3"}},
      {R"({"type":"number","minimum":99.5,"maximum":1200.25})",
       {"99.5", "99.9", "100", "999.99", "1200.25", "1200.2"},
       {"99.4", "99", "1200.26", "1201", "9"}},
      {R"({"type":"number","minimum":1e-7,"maximum":1e3})", {"0.0000001", "1000", "5"}, {"0.00000001", "0", "1000.1"}},
      {R"({"type":"integer","multipleOf":1})", {"5"}, {"0.5"}},
  });
}

TEST(JsonSchema, Objects) {
  const char* abc =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},"required":["b"]})";
  check({
      {abc,
       {R"({"b": "x"})", R"({"a": 1, "b": "x"})", R"({"a":1,"b":"x","c":null})", R"({"b":"","c":null})"},
       {"{}", R"({"a": 1})", R"({"b": 1})", R"({"b":"x","a":1})", R"({"b":"x","d":1})", R"({"a":1,})",
        R"({"a":1"b":"x"})", R"({,"b":"x"})"}},
      {R"({"type":"object","properties":{"a":true},"additionalProperties":{"type":"integer"}})",
       {"{}", R"({"a":[]})", R"({"a":"x","ab":1,"":2})", R"({"b":1,"c":2})", "{\"\u00e9\":1}"},
       {R"({"b":"x"})", R"({"b":1,"a":1})", R"({"\u0061":1})"}},
      {"{\"properties\":{\"\u00e9\":true,\"a\\\"b\":true},\"additionalProperties\":{\"type\":\"integer\"}}",
       {"{\"\u00e9\":\"x\"}", "{\"\u00e8\":1}", R"({"a\"b":"x"})", R"({"ab":1})", R"({"a":1})"},
       {"{\"\u00e8\":\"x\"}", R"({"ab":"x"})"}},
      {R"({"type":"object","additionalProperties":{"type":"boolean"}})",
       {"{}", R"({"x":true,"y":false})"},
       {R"({"x":1})"}},
      {R"({"type":"object","properties":{},"additionalProperties":false})", {"{}"}, {R"({"x":1})"}},
      {R"({"type":"object","required":["k"]})", {R"({"k":1})"}, {"{}"}},
      {R"({"type":"object","properties":{"a":false,"b":true}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false})",
       {"{}", R"({"x-a":1,"x-b":2})"},
       {R"({"y":1})", R"({"x-a":"b"})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {"{}", R"({"a":1,"b":2,"c":3})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"minProperties":1,"maxProperties":2})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {"{}", R"({"a":1,"b":2,"c":3})"}},
      {R"({"type":"object","properties":{"a\nb":{"type":"null"}},"required":["a\nb"]})",
       {R"({"a\nb":null})"},
       {"{\"a\nb\":null}"}},
  });
}

TEST(JsonSchema, Arrays) {
  std::string many = "[1";
  for (int i = 1; i < 5000; ++i) many += ", 1";
  check({
      {R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[1, 2,3]"}, {"[\"a\"]", "[1,]", "[,1]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1, 2, 3]"},
       {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1})", {"[1]", "[1,2]"}, {"[]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":5000,"maxItems":100000})",
       {many + "]", many + ",1]"},
       {"[1]"}},
      {R"({"type":"array","items":{"type":"integer"},"maxItems":5000})", {"[]", many + "]"}, {many + ",1]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
       {"[]", "[1]", "[1,\"a\"]"},
       {"[\"a\"]", "[1,\"a\",1]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":2,"maxItems":4})",
       {"[1,\"a\"]", "[1,\"a\",null,null]"},
       {"[1]", "[1,\"a\",null,null,null]", "[1,\"a\",1]"}},
      {R"({"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"boolean"}}}})",
       {"[[[true],[]],[]]"},
       {"[[true]]"}},
  });
}

TEST(JsonSchema, ChoicesAndConstants) {
  check({
      {R"({"enum":["a","ab",1,null,[1,{"x":2}]]})",
       {R"("a")", R"("ab")", "1", "null", "[1, {\"x\": 2}]", "[1,{\"x\":2}]"},
       {R"("b")", "2", "12", "[1]"}},
      {R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"}},
      {R"({"type":"integer","enum":[1,5,9],"minimum":4})", {"5", "9"}, {"1"}},
      {R"({"const":{"a":[true]}})", {R"({"a": [true]})"}, {"{}"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"5", R"("a")"}, {R"("ab")", "null"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"5", R"("a")"}, {"null"}},
      {R"({"oneOf":[{"const":"x","title":"X"},{"const":"y"}]})", {R"("x")", R"("y")"}, {R"("z")"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},{"type":"object","properties":{"k":{"const":"b"},"w":{"type":"string"}},"required":["k","w"]}]})",
       {R"({"k":"a","v":1})", R"({"k":"b","w":""})"},
       {R"({"k":"a","w":""})", R"({"k":"b","v":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {"{}"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"null"}},"required":["b"]}]})",
       {R"({"a":1,"b":null})"},
       {R"({"a":1})", R"({"b":null})"}},
      {R"({"allOf":[{"type":["integer","null"],"minimum":3},{"type":"number","maximum":5}]})",
       {"3", "5"},
       {"2", "6", "null", "3.5"}},
      {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"a":{"minimum":3},"b":true}}],"type":"object"})",
       {"{}", R"({"a":3})"},
       {R"({"a":2})", R"({"b":1})"}},
      {R"({"anyOf":[{"enum":["a"]},{"enum":["b"]}],"type":"string"})", {R"("a")", R"("b")"}, {R"("c")"}},
  });
}

TEST(JsonSchema, References) {
  check({
      {R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/node"})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{}})"}},
      {R"({"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}},"required":["children"]})",
       {R"({"children":[]})", R"({"children":[{"children":[]}]})"},
       {R"({"children":[{}]})"}},
      {R"({"definitions":{"a b":{"type":"integer"}},"type":"array","items":{"$ref":"#/definitions/a%20b","description":"n"}})",
       {"[1]"},
       {"[\"a\"]"}},
      {R"({"$defs":{"s":{"type":"string"}},"type":"object","properties":{"x":{"$ref":"#/$defs/s","maxLength":1}}})",
       {R"({"x":"a"})"},
       {R"({"x":"ab"})", R"({"x":1})"}},
      {R"({"$defs":{"t":{"type":"object","properties":{"n":{"allOf":[{"$ref":"#/$defs/t"}],"description":"more"}}}},"$ref":"#/$defs/t"})",
       {"{}", R"({"n":{"n":{}}})"},
       {R"({"n":1})"}},
  });
}

TEST(JsonSchema, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"1", "must be an object or a boolean"},
      {R"({"type":"strin"})", "'strin' is unknown"},
      {R"({"type":[]})", "type"},
      {R"({"type":"object","properties":{"a":{"not":{}}}})", "#/properties/a: not"},
      {R"({"type":"array","items":{"type":"number","multipleOf":0.5}})", "#/items: multipleOf"},
      {R"({"type":"array","uniqueItems":true})", "uniqueItems"},
      {R"({"if":{},"then":{}})", "if"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "pattern"},
      {R"({"type":"string","pattern":"(a"})", "pattern"},
      {R"({"type":"string","pattern":"\\1"})", "pattern"},
      {R"({"type":"string","pattern":"a^b"})", "pattern"},
      {R"({"type":"string","pattern":"^(ab)+$","maxLength":3})", "beside minLength or maxLength"},
      {R"({"type":"string","minLength":-1})", "minLength"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "no text can ever match"},
      {R"({"$ref":"#/$defs/x"})", "names nothing"},
      {R"({"$ref":"other.json#/x"})", "outside"},
      {R"({"$ref":"#"})", "needs itself"},
      {R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})", "needs itself"},
      {R"({"allOf":[{"$ref":"#"},{"type":"object"}]})", "leads to itself"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "no text can ever match"},
      {"false", "no text can ever match"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf"},
      {R"({"anyOf":[]})", "anyOf"},
      {R"({"enum":[]})", "no text can ever match"},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string"})", "pattern"},
      {R"({"type":"object","properties":{"a":true},"minProperties":3})", "minProperties"},
      {R"({"type":"object","properties":[1]})", "properties"},
      {R"({"type":"object","required":"a"})", "required"},
  };
  for (const auto& [schema, message] : cases) {
    const std::string error = error_of(kSchema, schema);
    EXPECT_NE(error.find(message), std::string::npos) << schema << "\n" << error;
  }
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += R"({"type":"array","items":)";
  EXPECT_NE(error_of(kSchema, deep).find("nested"), std::string::npos);
  std::string members = R"({"type":"object","properties":{)";
  for (int i = 0; i < 5000; ++i) members += fmt::format("\"p{}\":{{}},", i);
  EXPECT_NE(error_of(kSchema, members + "\"z\":{}}}").find("members"), std::string::npos);
}

// Text of a few kilobytes must not become gigabytes, nor text of megabytes minutes.
TEST(JsonSchema, SchemasThatExplodeAreRefusedEarly) {
  const auto pattern = [](const std::string& text) { return R"({"type": "string", "pattern": ")" + text + "\"}"; };
  EXPECT_NE(error_of(kSchema, pattern(std::string(3'000'000, '|'))).find("more than 65536 bytes"), std::string::npos);
  const std::clock_t before = std::clock();
  std::string many = R"({"anyOf": [)";
  for (int i = 0; i < 50; ++i) many += pattern(std::string(16'000, '|')) + ",";
  EXPECT_NE(error_of(kSchema, many + R"({"type": "null"}]})"), "");
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 30);
}

TEST(JsonSchema, DamagedSchemasDoNoHarm) {
  const std::string seed =
      R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer","minimum":-5},"next":{"$ref":"#/$defs/n"}}}},)"
      R"("type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]{2,5}$","maxLength":4},"b":{"type":"array","items":)"
      R"({"anyOf":[{"$ref":"#/$defs/n"},{"enum":["x",1,null]}]},"minItems":1,"maxItems":9},"c":{"allOf":[{"type":"number"},{"maximum":2.5}]}},)"
      R"("required":["a","b"],"additionalProperties":{"type":"boolean"}})";
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = seed;
    const size_t edits = 1 + random() % 4;
    for (size_t e = 0; e < edits; ++e) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text[at] = "{}[]\",:0-9x\\$#"[random() % 14];
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.insert(at, std::to_string(static_cast<int32_t>(random())));
      }
    }
    const auto grammar = compile(kSchema, text);
    if (!grammar) continue;
    GrammarState state(*grammar);
    std::vector<uint64_t> bits(small_tokens()->words());
    EXPECT_TRUE(state.mask(bits)) << text;
  }
}

TEST(JsonSchema, MasksAreTheAllowedTokens) {
  const char* schema =
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":6},"value":{"type":"array","items":{"type":"number"},)"
      R"("maxItems":70},"s":{"type":"string"}},"required":["name"],"additionalProperties":{"type":"string","minLength":2}})";
  expect_masks_along_random_answers(compiled(kSchema, schema), 5, 12, 60);
}

}  // namespace
}  // namespace hearth
