#include "tilewright/cache/key.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace tilewright::cache {
namespace {

// Grows when the fields of a key change, or the format of an artifact: builds of different formats share a root without
// ever meeting each other's entries.
constexpr std::int64_t kSchema = 1;

const Digest& headers_digest() {
  static const Digest digest = [] {
    FieldHasher hasher;
    for (const compile::Header& header : compile::device_headers()) hasher.field(header.name, header.text);
    return hasher.finish();
  }();
  return digest;
}

}  // namespace

Key make_key(const compile::Source& source, std::string_view compiler_identity) {
  FieldHasher hasher;
  hasher.field("schema", kSchema)
      .field("version", TILEWRIGHT_VERSION)
      .field("headers", headers_digest().hex())
      .field("compiler", compiler_identity)
      .field("target", source.target.name())
      .field("cubin", std::int64_t{source.outputs.cubin})
      .field("ptx", std::int64_t{source.outputs.ptx})
      .field("line_info", std::int64_t{source.line_info})
      .field("max_registers", std::int64_t{source.max_registers})
      .field("name", source.name)
      .field("symbol", source.symbol)
      .field("description", source.description)
      .field("text", source.text);
  return hasher.finish();
}

std::string library_identity() { return fmt::format("{} {:.12}", TILEWRIGHT_VERSION, headers_digest().hex()); }

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
