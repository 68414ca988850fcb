#include "tilewright/cache/key.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace tilewright::cache {
namespace {

// Grows when the fields of a key change, or the format of an artifact: builds of different formats share a root without
// ever meeting each other's entries.
constexpr std::int64_t kSchema = 2;

}  // namespace

Key make_key(const compile::Source& source, std::string_view compiler_identity) {
  FieldHasher hasher;
  hasher.field("schema", kSchema)
      .field("compiler", compiler_identity)
      .field("source", compile::source_digest(source).hex());
  return hasher.finish();
}

std::string library_identity() {
  return fmt::format("{} {:.12}", TILEWRIGHT_VERSION, compile::device_headers_digest().hex());
}

std::optional<Key> parse_key(std::string_view hex) {
  Key key;
  if (hex.size() != 2 * key.bytes.size() || hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    std::uint8_t value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    key.bytes[i] = std::byte{value};
  }
  return key;
}

std::size_t KeyHash::operator()(const Key& key) const {
  std::size_t hash = 0;
  std::memcpy(&hash, key.bytes.data(), sizeof hash);
  return hash;
}

}  // namespace tilewright::cache
