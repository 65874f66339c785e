#include "text/known_texts.h"

#include <algorithm>
#include <cstring>

#include "text/stream_decoder.h"

namespace hearth {
namespace {

constexpr size_t kLongBytes = size_t{8} << 10;  // of a text with its ids: about a thousand tokens
// Of brief texts: each prompt is compared with all of them.
constexpr size_t kMostBrief = 4096;

size_t common_prefix(std::string_view a, std::string_view b) {
  constexpr size_t kBlock = 4096;  // memcmp is much faster than looking at each byte
  const size_t most = std::min(a.size(), b.size());
  size_t same = 0;
  while (same + kBlock <= most && std::memcmp(a.data() + same, b.data() + same, kBlock) == 0) same += kBlock;
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

// The segments from byte `from` of their joined text on.
std::vector<TextSegment> rest_of(std::span<const TextSegment> segments, size_t from) {
  std::vector<TextSegment> rest;
  for (TextSegment segment : segments) {
    const size_t skipped = std::min(from, segment.text.size());
    from -= skipped;
    segment.text.remove_prefix(skipped);
    if (!segment.text.empty()) rest.push_back(segment);
  }
  return rest;
}

}  // namespace

void KnownTexts::add(std::span<const int32_t> ids, const Tokenizer& tokenizer) {
  Entry entry;
  entry.ids.assign(ids.begin(), ids.end());
  Utf8Stream utf8;  // as the client got it
  bool spaced = !tokenizer.vocab().add_space_prefix;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string_view piece = tokenizer.piece(ids[i]);
    const bool special = !piece.empty() && tokenizer.is_special(ids[i]);
    // The space that encoding put in front of the first word is not part of the text.
    if (!special && !spaced && piece.starts_with(' ')) piece.remove_prefix(1);
    spaced |= !special;
    entry.text += utf8.push(piece);
    if (special) entry.specials.push_back({entry.text.size() - piece.size(), piece.size(), i});
  }
  entry.text += utf8.finish();
  std::lock_guard lock(mutex_);
  bool keep = entry.bytes() >= kLongBytes;
  for (Age* age : {&brief_, &kept_}) {
    std::erase_if(age->texts, [&](const std::shared_ptr<const Entry>& other) {
      if (!entry.text.starts_with(other->text)) return false;
      keep |= other->text.size() < entry.text.size() || age == &kept_;
      age->bytes -= other->bytes();
      return true;
    });
  }
  Age& age = keep ? kept_ : brief_;
  age.bytes += entry.bytes();
  age.texts.push_front(std::make_shared<const Entry>(std::move(entry)));
  while (kept_.bytes > max_bytes_ / 4 * 3) {
    const size_t bytes = kept_.texts.back()->bytes();
    brief_.texts.splice(brief_.texts.begin(), kept_.texts, std::prev(kept_.texts.end()));
    kept_.bytes -= bytes;
    brief_.bytes += bytes;
  }
  while (brief_.bytes + kept_.bytes > max_bytes_ || brief_.texts.size() > kMostBrief) {
    brief_.bytes -= brief_.texts.back()->bytes();
    brief_.texts.pop_back();
  }
}

size_t KnownTexts::bytes() const {
  std::lock_guard lock(mutex_);
  return brief_.bytes + kept_.bytes;
}

std::shared_ptr<const KnownTexts::Entry> KnownTexts::find(std::string_view text, size_t& common) {
  std::lock_guard lock(mutex_);
  Age* age = nullptr;
  std::list<std::shared_ptr<const Entry>>::iterator best;
  common = 0;
  for (Age* of : {&brief_, &kept_}) {
    for (auto it = of->texts.begin(); it != of->texts.end(); ++it) {
      const size_t length = common_prefix((*it)->text, text);
      // Of equals the one that is nothing but this beginning: all of it can be taken over.
      if (length < common || length == 0 || (length == common && (*it)->text.size() != length)) continue;
      common = length, best = it, age = of;
    }
  }
  if (age == nullptr) return nullptr;
  age->texts.splice(age->texts.begin(), age->texts, best);
  return *best;
}

std::vector<int32_t> KnownTexts::encode(std::span<const TextSegment> segments, const Tokenizer& tokenizer) {
  std::string text;
  for (const TextSegment& segment : segments) text += segment.text;
  size_t common = 0;
  const std::shared_ptr<const Entry> entry = find(text, common);
  if (!entry) return tokenizer.encode(segments);
  const Entry& known = *entry;

  // Special tokens divide the text into stretches that are tokenized each for itself, so that a cut in front of one
  // changes nothing. `cut`: the last of them that both texts have up to there.
  size_t segment = 0, segment_begin = 0;
  const auto trusted = [&](size_t begin, size_t end) {
    while (segment_begin + segments[segment].text.size() <= begin) segment_begin += segments[segment++].text.size();
    size_t s = segment, s_begin = segment_begin;
    for (; s_begin < end; s_begin += segments[s++].text.size()) {
      if (!segments[s].trusted) return false;
    }
    return true;
  };
  const Special* cut = nullptr;
  bool whole = common == known.text.size();  // every special token of it is taken over
  for (const Special& special : known.specials) {
    if (special.byte + special.length > common) break;
    cut = &special;
    if (!trusted(special.byte, special.byte + special.length)) {
      whole = false;
      break;
    }
  }
  if (whole) {
    std::vector<int32_t> rest = tokenizer.encode(rest_of(segments, common));
    if (rest.empty() || tokenizer.is_special(rest.front())) {
      rest.insert(rest.begin(), known.ids.begin(), known.ids.end());
      return rest;
    }
  }
  if (cut == nullptr) return tokenizer.encode(segments);
  std::vector<int32_t> rest = tokenizer.encode(rest_of(segments, cut->byte));
  rest.insert(rest.begin(), known.ids.begin(), known.ids.begin() + static_cast<std::ptrdiff_t>(cut->index));
  return rest;
}

}  // namespace hearth
