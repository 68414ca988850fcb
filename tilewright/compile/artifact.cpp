#include "tilewright/compile/artifact.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tilewright/base/hash.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

using Json = nlohmann::json;

constexpr std::array<char, 4> kMagic = {'T', 'W', 'K', '1'};
constexpr std::uint32_t kFormatVersion = 2;

// The first 64 bytes of a serialized artifact, little-endian; metadata, cubin and PTX follow. The digest covers every
// byte after the digest.
struct FileHeader {
  std::array<char, 4> magic = kMagic;
  std::uint32_t version = kFormatVersion;
  std::array<std::byte, 32> digest{};
  std::array<std::uint64_t, 3> part_sizes{};
};
static_assert(sizeof(FileHeader) == 64 && std::endian::native == std::endian::little);
constexpr std::size_t kHashedFrom = offsetof(FileHeader, part_sizes);

std::string metadata_of(const Artifact& artifact) {
  Json json = {{"name", artifact.name},
               {"symbol", artifact.symbol},
               {"target", artifact.target.name()},
               {"static_smem_bytes", artifact.static_smem_bytes},
               {"compiler", artifact.compiler},
               {"compile_ms", artifact.compile_ms},
               {"description", artifact.description},
               {"source", artifact.source}};
  if (artifact.registers) json["registers"] = *artifact.registers;
  if (artifact.spill_bytes) json["spill_bytes"] = *artifact.spill_bytes;
  try {
    return json.dump();
  } catch (const Json::type_error& error) {
    throw InvalidArgument(
        fmt::format("artifact '{}' contains text that is not UTF-8: {}", printable(artifact.name), error.what()));
  }
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the fields of the metadata one by one; failed() names the first field that is missing or of the wrong type.
class MetadataReader {
 public:
  explicit MetadataReader(const Json& json) : json_(json) {}

  std::string text(const char* key) {
    const Json* value = find(key, &Json::is_string);
    return value == nullptr ? std::string() : value->get<std::string>();
  }
  double number(const char* key) {
    const Json* value = find(key, &Json::is_number);
    return value == nullptr ? 0.0 : value->get<double>();
  }
  std::int64_t integer(const char* key) {
    const Json* value = find(key, &Json::is_number_integer);
    const std::int64_t result = value == nullptr ? 0 : value->get<std::int64_t>();
    if (result < 0) fail(key);
    return result;
  }
  std::optional<int> optional_int(const char* key) {
    if (!json_.contains(key)) return std::nullopt;
    const std::int64_t value = integer(key);
    if (value > std::numeric_limits<int>::max()) fail(key);
    return static_cast<int>(value);
  }
  std::string identifier(const char* key) {
    std::string value = text(key);
    if (!is_identifier(value)) fail(key);
    return value;
  }
  void fail(const char* key) {
    if (failed_.empty()) failed_ = key;
  }
  const std::string& failed() const { return failed_; }

 private:
  const Json* find(const char* key, bool (Json::*is_kind)() const noexcept) {
    const auto found = json_.find(key);
    if (found != json_.end() && ((*found).*is_kind)()) return &*found;
    fail(key);
    return nullptr;
  }

  const Json& json_;
  std::string failed_;
};

Result<Artifact> parse_metadata(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return refuse("metadata is not a JSON object");
  MetadataReader reader(json);
  Artifact artifact;
  artifact.name = reader.identifier("name");
  artifact.symbol = reader.identifier("symbol");
  const Result<Target> target = parse_target(reader.text("target"));
  if (target) {
    artifact.target = *target;
  } else {
    reader.fail("target");
  }
  artifact.registers = reader.optional_int("registers");
  artifact.spill_bytes = reader.optional_int("spill_bytes");
  artifact.static_smem_bytes = reader.integer("static_smem_bytes");
  artifact.compiler = reader.text("compiler");
  artifact.compile_ms = reader.number("compile_ms");
  artifact.description = reader.text("description");
  artifact.source = reader.text("source");
  if (!reader.failed().empty()) return refuse("metadata field '{}' is missing or invalid", reader.failed());
  return artifact;
}

}  // namespace

std::vector<std::byte> serialize(const Artifact& artifact) {
  const std::string metadata = metadata_of(artifact);
  const std::array<std::span<const std::byte>, 3> parts = {std::as_bytes(std::span(metadata)), artifact.cubin,
                                                           std::as_bytes(std::span(artifact.ptx))};
  FileHeader header;
  std::size_t size = sizeof header;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    header.part_sizes[i] = parts[i].size();
    size += parts[i].size();
  }
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &header, sizeof header);
  auto end = bytes.begin() + sizeof header;
  for (const auto part : parts) end = std::copy(part.begin(), part.end(), end);

  const Digest digest = sha256(std::span<const std::byte>(bytes).subspan(kHashedFrom));
  std::copy(digest.bytes.begin(), digest.bytes.end(), bytes.begin() + offsetof(FileHeader, digest));
  return bytes;
}

Result<Artifact> deserialize(std::span<const std::byte> bytes) {
  FileHeader header;
  if (bytes.size() < sizeof header)
    return refuse("it is truncated: {} bytes are too few for a header of {} bytes", bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return refuse("not a Tilewright artifact");
  if (header.version != kFormatVersion) {
    return refuse("the format version is {}, this build reads version {}", header.version, kFormatVersion);
  }
  const std::span<const std::byte> hashed = bytes.subspan(kHashedFrom);
  if (sha256(hashed).bytes != header.digest) {
    std::uint64_t whole = sizeof header;
    bool overflows = false;
    for (const std::uint64_t size : header.part_sizes) overflows |= __builtin_add_overflow(whole, size, &whole);
    if (overflows || whole <= bytes.size()) return refuse("SHA-256 mismatch over {} bytes", hashed.size());
    return refuse(
        "it is truncated: its header says {} bytes, but it has {}; copy it again, or compile the kernel again", whole,
        bytes.size());
  }

  std::span<const std::byte> rest = bytes.subspan(sizeof header);
  std::array<std::span<const std::byte>, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t size = header.part_sizes[i];
    if (size > rest.size()) return refuse("the header claims a part of {} bytes, but {} are left", size, rest.size());
    parts[i] = rest.first(size);
    rest = rest.subspan(size);
  }
  if (!rest.empty()) return refuse("{} bytes follow the last part", rest.size());

  Result<Artifact> parsed = parse_metadata(as_text(parts[0]));
  if (!parsed) return parsed;
  Artifact artifact = *std::move(parsed);
  artifact.cubin.assign(parts[1].begin(), parts[1].end());
  artifact.ptx = as_text(parts[2]);
  return artifact;
}

bool is_of_newer_format(std::span<const std::byte> bytes) {
  FileHeader header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  constexpr std::uint32_t kPlausible = 1000;  // a higher version number can only be damage
  return header.magic == kMagic && header.version > kFormatVersion && header.version < kPlausible;
}

Support check_made_from(const Artifact& artifact, const Source& source) {
  const auto check = [](std::string_view what, std::string_view has, std::string_view wanted) -> Support {
    if (has == wanted) return {};
    return refuse("the artifact's {} is {}, not {}", what, printable(has), printable(wanted)).as(RefusalCode::artifact);
  };
  if (const Support same = check("name", artifact.name, source.name); !same) return same;
  if (const Support same = check("symbol", artifact.symbol, source.symbol); !same) return same;
  if (const Support same = check("target", artifact.target.name(), source.target.name()); !same) return same;
  return check("source", artifact.source, source_digest(source).hex());
}

Artifact precompiled_artifact(const Source& source) {
  validate(source).or_throw();
  TILEWRIGHT_CHECK(!is_compiled(source.language), "{} is in {}, which must be compiled", source.name,
                   name(source.language));
  Artifact artifact;
  artifact.name = source.name;
  artifact.symbol = source.symbol;
  artifact.target = source.target;
  if (source.language == Language::ptx) {
    artifact.ptx = source.text;
  } else {
    const auto bytes = std::as_bytes(std::span(source.text));
    artifact.cubin.assign(bytes.begin(), bytes.end());
  }
  artifact.compiler = "none: supplied by the user";
  artifact.description = source.description;
  artifact.source = source_digest(source).hex();
  return artifact;
}

void write_artifact(const Artifact& artifact, const std::string& path) {
  const std::vector<std::byte> bytes = serialize(artifact);
  write_file(path, as_text(bytes));
}

Result<Artifact> read_artifact(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{512} << 20;
  const std::string bytes = read_file(path, kMaxBytes);
  Result<Artifact> artifact = deserialize(std::as_bytes(std::span(bytes)));
  if (!artifact) return refuse("{}: {}", path, artifact.reason()).as(RefusalCode::artifact);
  return artifact;
}

}  // namespace tilewright::compile
