// Python's two ways to format text: "%s" % value and "{}".format(value).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/text_functions.h"

namespace hearth::jinja {
namespace {

// Width and precision beyond which a format is refused.
constexpr int kMaxWidth = 4096;

// One conversion of a % format.
struct Spec {
  bool left = false;
  bool plus = false;
  bool space = false;
  bool zero = false;
  bool alternate = false;
  int width = 0;
  int precision = -1;
  char type = 's';
};

std::string printf_flags(const Spec& spec) {
  std::string flags = "%";
  if (spec.plus) flags += '+';
  if (spec.space) flags += ' ';
  if (spec.alternate) flags += '#';
  return flags;
}

std::string format_float(const Spec& spec, double value) {
  if (!std::isfinite(value)) {
    const std::string text = std::isnan(value) ? "nan" : value < 0 ? "-inf" : spec.plus ? "+inf" : "inf";
    return text;
  }
  const std::string format = printf_flags(spec) + ".*" + spec.type;
  std::string out(512, '\0');
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const int size = std::snprintf(out.data(), out.size(), format.c_str(), precision, value);
  out.resize(static_cast<size_t>(size) + 1);
  std::snprintf(out.data(), out.size(), format.c_str(), precision, value);
  out.resize(static_cast<size_t>(size));
  return out;
}

std::string format_int(const Spec& spec, Int value) {
  const bool negative = value < 0;
  const unsigned __int128 magnitude =
      negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits = spec.type == 'x'   ? fmt::format("{:x}", magnitude)
                       : spec.type == 'X' ? fmt::format("{:X}", magnitude)
                       : spec.type == 'o' ? fmt::format("{:o}", magnitude)
                                          : fmt::format("{}", magnitude);
  if (spec.precision > static_cast<int>(digits.size())) {
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  if (spec.alternate && (spec.type == 'x' || spec.type == 'X' || spec.type == 'o')) {
    digits.insert(0, std::string{'0', spec.type});
  }
  return (negative ? "-" : spec.plus ? "+" : spec.space ? " " : "") + digits;
}

}  // namespace

Value Interpreter::format_percent(const Text& format, const Value& value) {
  if (!charge(format.bytes.size())) return {};
  const std::string& bytes = format.bytes;
  const Sequence* tuple = value.sequence() != nullptr && value.sequence()->is_tuple() ? value.sequence() : nullptr;
  size_t next_argument = 0;
  bool named = false;
  size_t hint = 0;
  TextBuilder out;
  size_t pos = 0;
  const auto take = [&]() -> Value {
    if (tuple == nullptr && next_argument == 0) {
      ++next_argument;
      return value;
    }
    if (tuple != nullptr && next_argument < tuple->items.size()) return tuple->items[next_argument++];
    return fail("a format has more conversions than there are values");
  };
  while (pos < bytes.size() && ok()) {
    const size_t percent = std::min(bytes.find('%', pos), bytes.size());
    out.append_range(format, pos, percent);
    if (percent == bytes.size()) break;
    pos = percent + 1;
    const bool trusted = trusted_at(format, percent, hint);
    Spec spec;
    std::optional<Value> argument;
    if (pos < bytes.size() && bytes[pos] == '(') {
      const size_t close = bytes.find(')', pos);
      if (close == std::string::npos || value.dict() == nullptr) return fail("a format with %(name) needs a dict");
      const Value* found = value.dict()->find(string_key(std::string_view(bytes).substr(pos + 1, close - pos - 1)));
      if (found == nullptr) return fail("a format names {}, which is not there", bytes.substr(pos, close - pos + 1));
      argument = *found;
      named = true;
      pos = close + 1;
    }
    for (; pos < bytes.size(); ++pos) {
      const char c = bytes[pos];
      if (c == '-')
        spec.left = true;
      else if (c == '+')
        spec.plus = true;
      else if (c == ' ')
        spec.space = true;
      else if (c == '0')
        spec.zero = true;
      else if (c == '#')
        spec.alternate = true;
      else
        break;
    }
    const auto number = [&](int& target) {
      if (pos < bytes.size() && bytes[pos] == '*') {
        ++pos;
        Int width = integer(take(), "the width of a format");
        if (width < 0 && &target == &spec.width) {
          spec.left = true;
          width = -width;
        }
        target = static_cast<int>(std::clamp(width, Int{0}, Int{kMaxWidth + 1}));
        return;
      }
      while (pos < bytes.size() && bytes[pos] >= '0' && bytes[pos] <= '9') {
        target = std::min(std::max(target, 0) * 10 + (bytes[pos++] - '0'), kMaxWidth + 1);
      }
    };
    number(spec.width);
    if (pos < bytes.size() && bytes[pos] == '.') {
      ++pos;
      spec.precision = 0;
      number(spec.precision);
    }
    while (pos < bytes.size() && (bytes[pos] == 'l' || bytes[pos] == 'h' || bytes[pos] == 'L')) ++pos;
    if (pos >= bytes.size()) return fail("a format ends inside a conversion");
    if (spec.width > kMaxWidth || spec.precision > kMaxWidth) return fail("a format is wider than {}", kMaxWidth);
    spec.type = bytes[pos++];
    if (spec.type == '%') {
      out.append("%", trusted);
      continue;
    }
    if (!argument) argument = take();
    if (!ok()) return {};
    TextBuilder piece;
    bool numeric = false;
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        TextBuilder whole;
        if (spec.type == 's') {
          const TextPtr shown = str(*argument);
          if (!check_growth(shown->bytes.size(), out.size_bytes() + shown->bytes.size())) return {};
          whole.append(*shown);
        } else {
          repr(whole, *argument);
        }
        const Value whole_text = text(std::move(whole));
        if (!ok()) return {};
        size_t end = 0;
        const std::string& source = whole_text.bytes();
        for (int i = 0; spec.precision >= 0 && i < spec.precision && end < source.size(); ++i) {
          end += code_point_bytes(source, end);
        }
        piece.append_range(whole_text.text(), 0, spec.precision >= 0 ? end : source.size());
        break;
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        const bool hex = spec.type == 'x' || spec.type == 'X' || spec.type == 'o';
        if (!argument->is_number() || (hex && !argument->is_integral())) {
          return fail("%{} needs a number, not {}", spec.type, type_name(*argument));
        }
        numeric = true;
        if (argument->is<double>() && !(std::abs(argument->get<double>()) < 1e38)) return fail("%d of a huge float");
        piece.append(
            format_int(spec, argument->is<double>() ? static_cast<Int>(argument->get<double>()) : argument->integral()),
            true);
        break;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!argument->is_number()) return fail("%{} needs a number, not {}", spec.type, type_name(*argument));
        numeric = true;
        piece.append(format_float(spec, argument->real()), true);
        break;
      case 'c': {
        std::string character;
        if (argument->is_string() && count_code_points(argument->bytes()) == 1) {
          piece.append(argument->text());
        } else if (argument->is_integral() && argument->integral() >= 0 && argument->integral() < 0x110000) {
          append_utf8(character, static_cast<char32_t>(argument->integral()));
          piece.append(character, true);
        } else {
          return fail("%c needs one character or its number");
        }
        break;
      }
      default:
        return fail("found %{} in a format; supported are %s %r %d %i %x %X %o %e %f %g %c and %%", spec.type);
    }
    const int missing = spec.width - static_cast<int>(std::min<int64_t>(count_code_points(piece.bytes_), kMaxWidth));
    const std::string padding(static_cast<size_t>(std::max(0, missing)),
                              numeric && spec.zero && !spec.left ? '0' : ' ');
    if (padding.empty() || spec.left) {
      out.append(text(std::move(piece)).text());
      out.append(padding, true);
    } else if (padding[0] == '0') {
      const size_t sign = piece.bytes_.find_first_of("+- ") == 0 ? 1 : 0;
      out.append(piece.bytes_.substr(0, sign) + padding + piece.bytes_.substr(sign), true);
    } else {
      out.append(padding, true);
      out.append(text(std::move(piece)).text());
    }
    if (!check_growth(static_cast<size_t>(spec.width), out.size_bytes())) return {};
  }
  const bool leftovers = tuple != nullptr ? next_argument < tuple->items.size()
                                          : next_argument == 0 && value.dict() == nullptr && !value.is_undefined() &&
                                                !(value.sequence() != nullptr && value.sequence()->has_index());
  if (ok() && leftovers && !named) return fail("a format has fewer conversions than there are values");
  return text(std::move(out), format.markup);
}

Value Interpreter::format_braces(const Text& format, Args& args) {
  if (!charge(format.bytes.size())) return {};
  const std::string& bytes = format.bytes;
  TextBuilder out;
  size_t next_argument = 0;
  for (size_t pos = 0; pos < bytes.size() && ok();) {
    const size_t brace = std::min(bytes.find_first_of("{}", pos), bytes.size());
    out.append_range(format, pos, brace);
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      out.append_range(format, brace, brace + 1);
      pos = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string::npos) return fail("format(): a single '{}'", bytes[brace]);
    std::string field = bytes.substr(brace + 1, close - brace - 1);
    pos = close + 1;
    bool use_repr = false;
    if (field.ends_with("!r") || field.ends_with("!s")) {
      use_repr = field.ends_with("!r");
      field.resize(field.size() - 2);
    }
    if (field.find_first_of(":.[!{") != std::string::npos) {
      return fail("format(): found the field '{{{}}}'; supported are {{}}, {{0}}, {{name}} and !r, !s", field);
    }
    Value argument;
    size_t position = next_argument;
    const bool is_number = field.find_first_not_of("0123456789") == std::string::npos && field.size() < 9;
    if (is_number) {
      if (field.empty()) {
        ++next_argument;
      } else {
        std::from_chars(field.data(), field.data() + field.size(), position);
      }
      if (position >= args.positional.size()) return fail("format(): there is no argument {}", position);
      argument = args.positional[position];
    } else {
      auto named =
          std::find_if(args.named.begin(), args.named.end(), [&](const auto& arg) { return arg.first == field; });
      if (named == args.named.end()) return fail("format(): there is no argument '{}'", field);
      argument = named->second;
    }
    if (use_repr) {
      repr(out, argument);
    } else {
      const TextPtr shown = str(argument);
      if (!check_growth(shown->bytes.size(), out.size_bytes() + shown->bytes.size())) return {};
      out.append(*shown);
    }
    if (!ok()) return {};
  }
  return text(std::move(out), format.markup);
}

}  // namespace hearth::jinja
