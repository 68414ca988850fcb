#include "tools/cli/finding_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tools/cli/number.hpp"

namespace tilewright::cli {
namespace {

/// Whether `file` is `suffix` or ends with it after a slash.
bool ends_path(const std::string& file, const std::string& suffix) {
  if (!file.ends_with(suffix)) return false;
  return file.size() == suffix.size() || file[file.size() - suffix.size() - 1] == '/';
}

/// Whether a path is that of a header of the CUDA toolkit or of the host's C++ library.
bool is_toolkit_header(const std::string& file) {
  return file.starts_with("/usr/include/") || file.find("/targets/x86_64-linux/include/") != std::string::npos ||
         file.find("/include/cccl/") != std::string::npos || file.find("/include/crt/") != std::string::npos;
}

/// The contents of a file; empty if it cannot be read, or is larger than a source file.
std::string read_text(const std::string& path) {
  const Result<compile::UniqueFd> file = compile::open_regular_file(path);
  if (!file) return {};
  std::vector<std::byte> bytes(std::size_t{4} << 20);
  bytes.resize(compile::read_at(file->get(), bytes, 0, path));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nlohmann::ordered_json index_json(const runtime::Dim3& index) { return {index.x, index.y, index.z}; }

}  // namespace

std::optional<emulator::SourceLine> SourceExcerpts::own_frame(const emulator::CodeLocation& location) const {
  if (location.source.empty()) return std::nullopt;
  const auto is_own = [&](const emulator::SourceLine& frame) {
    return kernel_ != nullptr ? frame.file == kernel_->path : !is_toolkit_header(frame.file);
  };
  const auto own = std::ranges::find_if(location.source, is_own);
  return own != location.source.end() ? *own : location.source.front();
}

const std::string* SourceExcerpts::file_text(const std::string& path) const {
  if (kernel_ != nullptr && path == kernel_->path) return &kernel_->text;
  const auto [entry, inserted] = files_.try_emplace(path);
  if (inserted) entry->second = read_text(path);
  return &entry->second;
}

std::string SourceExcerpts::text_of(const emulator::SourceLine& line) const {
  const std::string* const text = file_text(line.file);
  if (text == nullptr) return {};
  std::istringstream lines(*text);
  std::string found;
  for (int number = 0; number < line.line; ++number) {
    if (!std::getline(lines, found)) return {};
  }
  constexpr std::string_view kBlanks = " \t\r";  // lines may end with a carriage return
  const std::size_t begin = found.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return printable(found.substr(begin, found.find_last_not_of(kBlanks) + 1 - begin), 160);
}

Suppressions Suppressions::read(const std::string& path) {
  const Result<compile::UniqueFd> file = compile::open_regular_file(path);
  if (!file) throw InvalidArgument(fmt::format("{}: cannot be opened: {}", printable(path), file.reason()));
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  bytes.resize(compile::read_at(file->get(), bytes, 0, path));
  return parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
}

Suppressions Suppressions::parse(const std::string& text, const std::string& path) {
  Suppressions suppressions;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string kind, place, rest;
    if (!(words >> kind)) continue;
    words >> place;
    const auto refuse = [&](std::string_view why) {
      throw InvalidArgument(fmt::format("{}:{}: {}", printable(path), number, why));
    };
    if (words >> rest) refuse("a line is KIND, KIND FILE or KIND FILE:LINE");
    Row row{emulator::parse_finding_kind(kind), place, 0};
    if (!row.kind && kind != "*") refuse(fmt::format("unknown kind of finding '{}'", printable(kind, 60)));
    if (const std::size_t colon = place.rfind(':'); colon != std::string::npos) {
      const std::optional<int> at = read_integer<int>(place.substr(colon + 1), {1});
      if (!at) refuse(fmt::format("'{}' is no line number", printable(place.substr(colon + 1), 40)));
      row.file = place.substr(0, colon);
      row.line = *at;
    }
    suppressions.rows_.push_back(std::move(row));
  }
  return suppressions;
}

bool Suppressions::match(const emulator::Finding& finding) const {
  return std::ranges::any_of(rows_, [&](const Row& row) {
    if (row.kind && *row.kind != finding.kind) return false;
    if (row.file.empty()) return true;
    return std::ranges::any_of(finding.location.source, [&](const emulator::SourceLine& frame) {
      return ends_path(frame.file, row.file) && (row.line == 0 || row.line == frame.line);
    });
  });
}

std::string report_text(const emulator::Finding& finding, const SourceExcerpts& excerpts) {
  const emulator::CodeLocation& location = finding.location;
  const std::optional<emulator::SourceLine> own = excerpts.own_frame(location);
  std::string text = fmt::format("{}: {}", emulator::name(finding.severity), emulator::name(finding.kind));
  if (own) {
    text += fmt::format(" at {}:{}", own->file, own->line);
  } else if (location.ptx_line != 0) {
    text += fmt::format(" at PTX line {}", location.ptx_line);
  }
  text += '\n';
  if (own) {
    if (const std::string excerpt = excerpts.text_of(*own); !excerpt.empty())
      text += fmt::format("{:>6} | {}\n", own->line, excerpt);
  }
  text += "  " + finding.detail + '\n';
  if (finding.thread) {
    text += fmt::format("  thread {} of CTA {}", emulator::to_string(finding.thread->thread),
                        emulator::to_string(finding.thread->cta));
    if (finding.count > 1) text += fmt::format(", and {} more of this kind at this line", finding.count - 1);
    text += '\n';
  }
  for (const emulator::SourceLine& frame : location.source) {
    if (own && frame == *own) continue;
    text += fmt::format("  frame: {}:{}\n", frame.file, frame.line);
  }
  if (location.ptx_line != 0 && !location.ptx_text.empty())
    text += fmt::format("  PTX line {}: {}\n", location.ptx_line, location.ptx_text);
  for (const std::string& note : finding.notes) text += fmt::format("  note: {}\n", note);
  if (!emulator::fix(finding.kind).empty()) text += fmt::format("  fix: {}\n", emulator::fix(finding.kind));
  return text;
}

nlohmann::ordered_json report_json(const emulator::Finding& finding, const SourceExcerpts& excerpts) {
  const emulator::CodeLocation& location = finding.location;
  nlohmann::ordered_json json{{"kind", emulator::identifier(finding.kind)},
                              {"severity", emulator::name(finding.severity)},
                              {"detail", finding.detail},
                              {"count", finding.count}};
  if (finding.thread) {
    json["thread"] = index_json(finding.thread->thread);
    json["cta"] = index_json(finding.thread->cta);
  }
  if (const auto own = excerpts.own_frame(location)) {
    json["file"] = own->file;
    json["line"] = own->line;
    json["excerpt"] = excerpts.text_of(*own);
  }
  nlohmann::ordered_json frames = nlohmann::ordered_json::array();
  for (const emulator::SourceLine& frame : location.source)
    frames.push_back({{"file", frame.file}, {"line", frame.line}});
  json["frames"] = frames;
  json["ptx_line"] = location.ptx_line;
  json["ptx"] = location.ptx_text;
  json["address"] = finding.address;
  json["notes"] = finding.notes;
  json["fix"] = emulator::fix(finding.kind);
  return json;
}

}  // namespace tilewright::cli
