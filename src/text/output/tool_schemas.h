// What the tools of a conversation say about the types of their parameters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hearth {

// Types that a JSON value may have, as bits.
enum JsonType : uint8_t {
  kStringType = 1,
  kNumberType = 2,
  kBooleanType = 4,
  kNullType = 8,
  kArrayType = 16,
  kObjectType = 32
};
using JsonTypes = uint8_t;
inline constexpr JsonTypes kAnyType = 63;

class ToolSchemas {
 public:
  // As in OutputOptions; what cannot be read says nothing about types.
  explicit ToolSchemas(std::string_view tools_json);

  bool any() const { return any_; }  // there are tools
  bool has_tool(const std::string& name) const { return tools_.contains(name); }
  // What the schema allows; 0 if it does not say.
  JsonTypes types(const std::string& tool, const std::string& parameter) const;

 private:
  bool any_ = false;
  std::map<std::string, std::map<std::string, JsonTypes>> tools_;
};

}  // namespace hearth
