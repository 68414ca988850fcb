#include "tilewright/cache/signature.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

constexpr std::size_t kSignatureBytes = 64;

struct FreeBio {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Replaces OpenSSL's callback that would ask for a pass phrase on the terminal.
int no_pass_phrase(char*, int, int, void*) { return 0; }

using ReadPem = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

detail::KeyHandle read_key(const std::string& path, ReadPem read, const char* kind) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
  std::string text;
  try {
    text = compile::read_file(path, kMaxBytes);
  } catch (const Error& error) {
    throw InvalidArgument(error.what());
  }
  const std::unique_ptr<BIO, FreeBio> bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  detail::KeyHandle key(read(bio.get(), nullptr, no_pass_phrase, nullptr));
  if (!key || ::EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519)
    throw InvalidArgument(fmt::format("{} is not a PEM file with an Ed25519 {} key", printable(path), kind));
  return key;
}

}  // namespace

void detail::FreeKey::operator()(evp_pkey_st* key) const { ::EVP_PKEY_free(key); }

SigningKey SigningKey::read(const std::string& path) {
  return SigningKey(read_key(path, ::PEM_read_bio_PrivateKey, "private"));
}

std::vector<std::byte> SigningKey::sign(const Digest& digest) const {
  std::vector<std::byte> signature(kSignatureBytes);
  std::size_t size = signature.size();
  const Context context(::EVP_MD_CTX_new());
  const bool is_signed = context && ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
                         ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                                          data_of(digest.bytes), digest.bytes.size()) == 1;
  TILEWRIGHT_CHECK(is_signed && size == kSignatureBytes, "Ed25519 gave a signature of {} bytes", size);
  return signature;
}

TrustedKey TrustedKey::read(const std::string& path) {
  return TrustedKey(read_key(path, ::PEM_read_bio_PUBKEY, "public"));
}

bool TrustedKey::verifies(const Digest& digest, std::span<const std::byte> signature) const {
  if (signature.size() != kSignatureBytes) return false;
  const Context context(::EVP_MD_CTX_new());
  return context && ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
         ::EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(digest.bytes),
                            digest.bytes.size()) == 1;
}

}  // namespace tilewright::cache
