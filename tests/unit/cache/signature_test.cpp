#include "tilewright/cache/signature.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cache/ed25519_keys.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

using testing::HasSubstr;

class SignatureTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view text) const {
    const std::string path = folder_.path() + "/" + name;
    compile::write_new_file(path, text);
    return path;
  }

  compile::ScopedFolder folder_{testing::TempDir()};
};

TEST_F(SignatureTest, OnlyTheRightKeyAndTheRightDigestVerify) {
  const SigningKey key = SigningKey::read(file("a.pem", kPrivateKeyA));
  const TrustedKey right = TrustedKey::read(file("a.pub", kPublicKeyA));
  const TrustedKey wrong = TrustedKey::read(file("b.pub", kPublicKeyB));
  const std::vector<std::byte> signature = key.sign(sha256("text"));
  EXPECT_EQ(signature.size(), 64u);
  EXPECT_TRUE(right.verifies(sha256("text"), signature));
  EXPECT_FALSE(right.verifies(sha256("other"), signature));
  EXPECT_FALSE(wrong.verifies(sha256("text"), signature));
  EXPECT_FALSE(right.verifies(sha256("text"), {}));
  for (std::size_t bit = 0; bit < 8 * signature.size(); bit += 37) {
    std::vector<std::byte> damaged = signature;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(right.verifies(sha256("text"), damaged)) << bit;
  }
}

TEST_F(SignatureTest, InvalidKeyFilesAreRefusedByName) {
  const auto expect_refused = [](const std::string& path, const char* why) {
    try {
      SigningKey::read(path);
      ADD_FAILURE() << path;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(path), HasSubstr(why)));
    }
  };
  expect_refused(file("public.pem", kPublicKeyA), "not a PEM file with an Ed25519 private key");
  expect_refused(file("garbage.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "Ed25519");
  expect_refused(file("empty.pem", ""), "Ed25519");
  expect_refused(folder_.path() + "/missing.pem", "No such file");
  EXPECT_THROW(TrustedKey::read(file("rsa.pem", kPublicKeyOfRsa)), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::cache
