// SHA-256 digests, and a hasher of tagged fields for cache keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

struct Digest {
  std::array<std::byte, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
};

Digest sha256(std::span<const std::byte> data);
Digest sha256(std::string_view text);

/// Hashes (tag, value) fields, each length-prefixed, so that no two different field lists collide by concatenation.
class FieldHasher {
 public:
  FieldHasher();
  ~FieldHasher();
  FieldHasher(const FieldHasher&) = delete;
  FieldHasher& operator=(const FieldHasher&) = delete;

  FieldHasher& field(std::string_view tag, std::string_view value);
  FieldHasher& field(std::string_view tag, std::int64_t value);
  /// The digest of all fields. May be called once.
  Digest finish();

 private:
  void update(const void* data, std::size_t size);

  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace tilewright
