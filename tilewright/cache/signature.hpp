// Ed25519 signatures (RFC 8032) of exported kernels, computed by OpenSSL. A key pair is generated with
//   openssl genpkey -algorithm ed25519 -out private.pem
//   openssl pkey -in private.pem -pubout -out public.pem
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/hash.hpp"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace tilewright::cache {

namespace detail {
struct FreeKey {
  void operator()(evp_pkey_st* key) const;
};
using KeyHandle = std::unique_ptr<evp_pkey_st, FreeKey>;
}  // namespace detail

class SigningKey {
 public:
  /// Reads a PEM file with an Ed25519 private key. @throws InvalidArgument naming the file and what is wrong with it.
  static SigningKey read(const std::string& path);

  /// A signature of 64 bytes.
  std::vector<std::byte> sign(const Digest& digest) const;

 private:
  explicit SigningKey(detail::KeyHandle key) : key_(std::move(key)) {}
  detail::KeyHandle key_;
};

class TrustedKey {
 public:
  /// Reads a PEM file with an Ed25519 public key. @throws InvalidArgument naming the file and what is wrong with it.
  static TrustedKey read(const std::string& path);

  bool verifies(const Digest& digest, std::span<const std::byte> signature) const;

 private:
  explicit TrustedKey(detail::KeyHandle key) : key_(std::move(key)) {}
  detail::KeyHandle key_;
};

}  // namespace tilewright::cache
