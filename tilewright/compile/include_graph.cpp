#include "tilewright/compile/include_graph.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>

namespace tilewright::compile {
namespace {

constexpr std::string_view kBlanks = " \t\v\f";

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

// The rest of a directive's logical line: lines that end in a backslash are continued.
std::string_view logical_line(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', end + 1)) {
    const std::string_view line = text.substr(0, end);
    if (!line.ends_with('\\') && !line.ends_with("\\\r")) return line;
  }
  return text;
}

struct Directive {
  enum class Kind { other, include, unknown } kind = Kind::other;  // unknown: it takes a preprocessor to read it
  std::string_view name = {};                                      // the name of the included header
  bool is_quoted = false;                                          // "name", not <name>
};

// `line` follows a '#', which may also be an operator of a macro or a character of a string.
Directive parse_directive(std::string_view line) {
  using Kind = Directive::Kind;
  line = without_leading_blanks(line);
  if (line.starts_with('\\') || line.starts_with("/*")) return {.kind = Kind::unknown};
  if (!line.starts_with("include"))
    return {.kind = line.find("__has_include") == std::string_view::npos ? Kind::other : Kind::unknown};
  line.remove_prefix(std::string_view("include").size());
  if (line.starts_with("_next")) line.remove_prefix(std::string_view("_next").size());
  line = without_leading_blanks(line);
  if (!line.starts_with('"') && !line.starts_with('<')) return {.kind = Kind::unknown};
  const bool is_quoted = line.front() == '"';
  const std::size_t end = line.find(is_quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return {.kind = Kind::unknown};
  return {.kind = Kind::include, .name = line.substr(1, end - 1), .is_quoted = is_quoted};
}

}  // namespace

IncludeGraph::IncludeGraph(std::span<const Header> headers) : headers_(headers.begin(), headers.end()) {
  includes_.reserve(headers_.size());
  for (const Header& header : headers_) includes_.push_back(includes_of(header.name, header.text));
}

const IncludeGraph& IncludeGraph::of_device_headers() {
  static const auto* const graph = new IncludeGraph(device_headers());  // never destroyed: threads may compile at exit
  return *graph;
}

IncludeGraph::Includes IncludeGraph::includes_of(std::string_view name, std::string_view text) const {
  const std::string folder(name.substr(0, name.rfind('/') + 1));
  Includes includes{.indices = {}, .needs_all = text.find("%:") != std::string_view::npos};  // the digraph of '#'
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    const Directive directive = parse_directive(logical_line(text.substr(at + 1)));
    includes.needs_all |= directive.kind == Directive::Kind::unknown;
    if (directive.kind != Directive::Kind::include) continue;
    append(includes.indices, directive.name);
    if (directive.is_quoted && !folder.empty()) append(includes.indices, folder + std::string(directive.name));
  }
  return includes;
}

void IncludeGraph::append(std::vector<std::size_t>& indices, std::string_view name) const {
  const bool is_normal = name.find("./") == std::string_view::npos && name.find("//") == std::string_view::npos;
  const std::string path = is_normal ? std::string(name) : std::filesystem::path(name).lexically_normal().string();
  const auto found = std::ranges::lower_bound(headers_, std::string_view(path), {}, &Header::name);
  if (found != headers_.end() && found->name == path)
    indices.push_back(static_cast<std::size_t>(found - headers_.begin()));
}

std::vector<std::size_t> IncludeGraph::reachable_from(const Source& source) const {
  if (source.language != Language::cuda) return {};
  std::vector<bool> is_reached(headers_.size());
  std::vector<std::size_t> to_visit;
  bool needs_all = false;
  const auto follow = [&](const Includes& includes) {
    needs_all |= includes.needs_all;
    for (const std::size_t index : includes.indices) {
      if (is_reached[index]) continue;
      is_reached[index] = true;
      to_visit.push_back(index);
    }
  };
  follow(includes_of("", source.text));
  for (const UserHeader& header : source.headers) follow(includes_of(header.name, header.text));
  while (!to_visit.empty()) {
    const std::size_t index = to_visit.back();
    to_visit.pop_back();
    follow(includes_[index]);
  }
  std::vector<std::size_t> reached;
  for (std::size_t i = 0; i < headers_.size(); ++i) {
    if (needs_all || is_reached[i]) reached.push_back(i);
  }
  return reached;
}

std::vector<Header> IncludeGraph::included_by(const Source& source) const {
  std::vector<Header> headers;
  for (const std::size_t index : reachable_from(source)) headers.push_back(headers_[index]);
  return headers;
}

Digest IncludeGraph::digest_of_included(const Source& source) const {
  constexpr std::size_t kMaxDigests = 1024;
  const std::vector<std::size_t> indices = reachable_from(source);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = digests_.find(indices); found != digests_.end()) return found->second;
  }
  FieldHasher hasher;
  for (const std::size_t index : indices) hasher.field(headers_[index].name, headers_[index].text);
  const Digest digest = hasher.finish();
  const std::scoped_lock lock(mutex_);
  if (digests_.size() >= kMaxDigests) digests_.clear();
  digests_.emplace(indices, digest);
  return digest;
}

}  // namespace tilewright::compile
