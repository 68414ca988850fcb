#include "tilewright/base/hash.hpp"

#include <openssl/evp.h>

#include "tilewright/base/error.hpp"

namespace tilewright {

std::string Digest::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

Digest sha256(std::span<const std::byte> data) {
  Digest digest;
  unsigned size = 0;
  const int ok = EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(digest.bytes.data()), &size,
                            EVP_sha256(), nullptr);
  TILEWRIGHT_CHECK(ok == 1 && size == digest.bytes.size(), "SHA-256 gave {} bytes", size);
  return digest;
}

Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

struct FieldHasher::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

FieldHasher::FieldHasher() : context_(std::make_unique<Context>()) {
  TILEWRIGHT_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1, "SHA-256 is not available");
}

FieldHasher::~FieldHasher() = default;

void FieldHasher::update(const void* data, std::size_t size) {
  TILEWRIGHT_CHECK(EVP_DigestUpdate(context_->evp, data, size) == 1, "SHA-256 failed on {} bytes", size);
}

FieldHasher& FieldHasher::field(std::string_view tag, std::string_view value) {
  for (const std::string_view part : {tag, value}) {
    const std::uint64_t size = part.size();
    update(&size, sizeof size);
    update(part.data(), part.size());
  }
  return *this;
}

FieldHasher& FieldHasher::field(std::string_view tag, std::int64_t value) { return field(tag, std::to_string(value)); }

Digest FieldHasher::finish() {
  Digest digest;
  unsigned size = 0;
  TILEWRIGHT_CHECK(EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.bytes.data()), &size) == 1,
                   "SHA-256 failed to finish");
  return digest;
}

}  // namespace tilewright
