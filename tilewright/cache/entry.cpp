#include "tilewright/cache/entry.hpp"

#include <algorithm>
#include <cstring>

namespace tilewright::cache {
namespace {

constexpr std::string_view kMagic = "TWE";
constexpr char kFormat = '2';
constexpr std::size_t kCompilerAt = kMagic.size() + 1 + sizeof(Digest::bytes);
constexpr std::size_t kHeaderBytes = kCompilerAt + sizeof(Key::compiler);

std::string_view without_suffix(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}

}  // namespace

EntryName entry_name(const Key& key) {
  const std::string name = key.name();
  return {name.substr(0, 2), name.substr(2) + std::string(kEntrySuffix)};
}

std::optional<Key> key_of_entry(std::string_view folder, std::string_view file) {
  return folder.size() == 2 ? parse_key(std::string(folder).append(without_suffix(file, kEntrySuffix))) : std::nullopt;
}

bool is_cache_file(std::string_view folder, std::string_view file) {
  if (folder.size() != 2) return false;
  return std::ranges::any_of(std::array{kEntrySuffix, kQuarantineSuffix}, [&](std::string_view suffix) {
    const std::string name = std::string(folder).append(without_suffix(file, suffix));
    return parse_key(name) || parse_digest(name);  // in versions before 0.2, a key was one digest
  });
}

std::vector<std::byte> encode_entry(const Key& key, const compile::Artifact& artifact) {
  const std::vector<std::byte> payload = compile::serialize(artifact);
  std::vector<std::byte> bytes(kHeaderBytes + payload.size());
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  bytes[kMagic.size()] = static_cast<std::byte>(kFormat);
  std::ranges::copy(key.source.bytes, bytes.begin() + kMagic.size() + 1);
  std::memcpy(bytes.data() + kCompilerAt, &key.compiler, sizeof key.compiler);
  std::ranges::copy(payload, bytes.begin() + kHeaderBytes);
  return bytes;
}

DecodedEntry decode_entry(const Key& key, std::span<const std::byte> bytes) {
  const auto damaged = [](std::string why) { return DecodedEntry{{}, std::move(why), false}; };
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return damaged(fmt::format("it is not a cache entry ({} bytes)", bytes.size()));
  const char format = static_cast<char>(bytes[kMagic.size()]);
  if (format > kFormat && format <= '9') return {{}, {}, true};
  std::uint64_t compiler = 0;
  std::memcpy(&compiler, bytes.data() + kCompilerAt, sizeof compiler);
  if (format != kFormat || compiler != key.compiler ||
      !std::equal(key.source.bytes.begin(), key.source.bytes.end(), bytes.begin() + kMagic.size() + 1)) {
    return damaged("it is the entry of another key");
  }
  const std::span<const std::byte> payload = bytes.subspan(kHeaderBytes);
  if (compile::is_of_newer_format(payload)) return {{}, {}, true};
  Result<compile::Artifact> artifact = compile::deserialize(payload);
  if (!artifact) return damaged(artifact.reason());
  if (artifact->source != key.source.hex())
    return damaged(fmt::format("it holds {}, which was compiled from another source", artifact->name));
  return {*std::move(artifact), {}, false};
}

}  // namespace tilewright::cache
