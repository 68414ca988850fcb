#include "tilewright/cache/key.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace tilewright::cache {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";  // lower case only: file systems may ignore case

std::uint64_t compiler_tag(std::string_view identity) {
  std::uint64_t tag = 0;
  const Digest digest = sha256(identity);
  std::memcpy(&tag, digest.bytes.data(), sizeof tag);
  return tag == kImported ? 1 : tag;
}

}  // namespace

std::string Key::name() const { return fmt::format("{}-{:016x}", source.hex(), compiler); }

Key make_key(const compile::Source& source, std::string_view compiler_identity) {
  return {compile::source_digest(source), compiler_tag(compiler_identity)};
}

std::string library_identity() {
  return fmt::format("{} {:.12}", TILEWRIGHT_VERSION, compile::device_headers_digest().hex());
}

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size() || hex.find_first_not_of(kHexDigits) != std::string_view::npos)
    return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    std::uint8_t value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    digest.bytes[i] = std::byte{value};
  }
  return digest;
}

std::optional<Key> parse_key(std::string_view name) {
  constexpr std::size_t kTagDigits = 16;
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos || name.size() != dash + 1 + kTagDigits) return std::nullopt;
  const std::string_view tag = name.substr(dash + 1);
  const std::optional<Digest> source = parse_digest(name.substr(0, dash));
  if (!source || tag.find_first_not_of(kHexDigits) != std::string_view::npos) return std::nullopt;
  Key key{.source = *source};
  std::from_chars(tag.data(), tag.data() + tag.size(), key.compiler, 16);
  return key;
}

std::size_t DigestHash::operator()(const Digest& digest) const {
  std::size_t hash = 0;
  std::memcpy(&hash, digest.bytes.data(), sizeof hash);
  return hash;
}

}  // namespace tilewright::cache
