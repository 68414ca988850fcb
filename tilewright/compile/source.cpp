#include "tilewright/compile/source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/base/text.hpp"
#include "tilewright/compile/include_graph.hpp"

namespace tilewright::compile {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxCubinBytes = std::size_t{256} << 20;

Support check_text(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    return refuse("source text must have at most {} bytes, got {}", kMaxTextBytes, text.size());
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos)
    return refuse("source text must not contain NUL characters, got one at byte {}", at);
  return {};
}

Support check_header(const UserHeader& header) {
  const std::filesystem::path path(header.name);
  const bool leaves_folder = path.is_absolute() || std::ranges::find(path, "..") != path.end();
  if (header.name.empty() || leaves_folder || printable(header.name) != header.name)
    return refuse("a header's name must be a relative path without '..', got '{}'", printable(header.name));
  return check_text(header.text);
}

}  // namespace

std::string_view name(Language language) {
  constexpr std::array<std::string_view, kLanguages.size()> kNames{"cuda", "ptx", "cubin", "mlir"};
  return kNames[static_cast<std::size_t>(language)];
}

Support validate(const Source& source) {
  constexpr std::size_t kMaxDescriptionBytes = std::size_t{1} << 20;
  constexpr int kMaxRegisters = 255;  // per thread, by the PTX ISA
  if (!is_identifier(source.name)) return refuse("name must be an identifier, got '{}'", printable(source.name));
  if (!is_identifier(source.symbol)) return refuse("symbol must be an identifier, got '{}'", printable(source.symbol));
  if (source.language != Language::cubin) {
    if (const Support text = check_text(source.text); !text) return text;
  } else if (source.text.size() > kMaxCubinBytes) {
    return refuse("a cubin must have at most {} bytes, got {} bytes", kMaxCubinBytes, source.text.size());
  }
  for (const UserHeader& header : source.headers) {
    if (const Support valid = check_header(header); !valid) return valid;
  }
  for (const std::string& folder : source.include_folders) {
    if (!folder.starts_with('/'))
      return refuse("an include folder must be an absolute path, got '{}'", printable(folder));
  }
  if (source.language == Language::mlir && !source.headers.empty())
    return refuse("a source in MLIR includes no headers, got {} headers", source.headers.size());
  if (!source.outputs.cubin && !source.outputs.ptx) return refuse("neither a cubin nor PTX is requested as output");
  if (source.max_registers < 0 || source.max_registers > kMaxRegisters) {
    return refuse("max_registers must be in 0..{}, got {}", kMaxRegisters, source.max_registers);
  }
  if (source.description.size() > kMaxDescriptionBytes) {
    return refuse("description must have at most {} bytes, got {}", kMaxDescriptionBytes, source.description.size());
  }
  if (!source.description.empty() && !nlohmann::json::accept(source.description)) {
    return refuse("description must be JSON, got '{}'", printable(source.description, 80));
  }
  return {};
}

const Digest& device_headers_digest() {
  static const Digest digest = [] {
    FieldHasher hasher;
    for (const Header& header : device_headers()) hasher.field(header.name, header.text);
    return hasher.finish();
  }();
  return digest;
}

Digest source_digest(const Source& source) { return source_digest(source, IncludeGraph::of_device_headers()); }

Digest source_digest(const Source& source, const IncludeGraph& headers) {
  FieldHasher hasher;
  hasher.field("version", TILEWRIGHT_VERSION)
      .field("included_headers", headers.digest_of_included(source).hex())
      .field("target", source.target.name())
      .field("language", name(source.language))
      .field("cubin", std::int64_t{source.outputs.cubin})
      .field("ptx", std::int64_t{source.outputs.ptx})
      .field("line_info", std::int64_t{source.line_info})
      .field("max_registers", std::int64_t{source.max_registers})
      .field("name", source.name)
      .field("symbol", source.symbol)
      .field("description", source.description)
      .field("user_headers", static_cast<std::int64_t>(source.headers.size()));
  if (source.refuses_lost_performance) hasher.field("refuses_lost_performance", std::int64_t{1});
  for (const UserHeader& header : source.headers) hasher.field(header.name, header.text);
  for (const std::string& folder : source.include_folders) hasher.field("include_folder", folder);
  hasher.field("text", source.text);
  return hasher.finish();
}

}  // namespace tilewright::compile
