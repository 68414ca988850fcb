// Invalid artifacts are refused with a reason; valid ones survive a round trip unchanged. Each input is tried again
// with the correct digest filled in, so that the checks after the digest are reached too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/hash.hpp"
#include "tilewright/compile/artifact.hpp"

namespace {

using namespace tilewright;

constexpr std::size_t kDigestAt = 8, kHashedFrom = 40;  // offsets in the file format

void check(std::span<const std::byte> bytes) {
  const Result<compile::Artifact> artifact = compile::deserialize(bytes);
  if (!artifact) {
    if (artifact.reason().empty()) std::abort();
    return;
  }
  const auto again = compile::deserialize(compile::serialize(*artifact));
  if (!again || !(*again == *artifact)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                               reinterpret_cast<const std::byte*>(data) + size);
  check(bytes);
  if (bytes.size() < kHashedFrom) return 0;
  const Digest digest = sha256(std::span<const std::byte>(bytes).subspan(kHashedFrom));
  std::copy(digest.bytes.begin(), digest.bytes.end(), bytes.begin() + kDigestAt);
  check(bytes);
  return 0;
}
