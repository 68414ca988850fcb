#include "tests/conformance/planted_kernel.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::conformance {
namespace {

constexpr std::string_view kFolder = "tilewright/";

void substitute(std::string& text, const Substitution& planted) {
  const std::size_t at = text.find(planted.from);
  if (at == std::string::npos || text.find(planted.from, at + 1) != std::string::npos) {
    throw InvalidArgument(
        fmt::format("{}{} must contain this text exactly once:\n{}", kFolder, planted.header, planted.from));
  }
  text.replace(at, planted.from.size(), planted.to);
}

/// The text of a device header with the fault.
std::string header_text(std::string_view name, std::span<const Substitution> planted) {
  const std::vector<compile::Header>& headers = compile::device_headers();
  const auto found = std::ranges::find(headers, name, &compile::Header::name);
  if (found == headers.end()) throw InvalidArgument(fmt::format("there is no device header {}", name));
  std::string text(found->text);
  for (const Substitution& each : planted) {
    if (name == fmt::format("{}{}", kFolder, each.header)) substitute(text, each);
  }
  return text;
}

/// Expands a text: each header replaces its first #include.
class Expansion {
 public:
  explicit Expansion(std::span<const Substitution> planted) : planted_(planted) {}

  void add(const std::string& name, const std::string& text) {
    std::istringstream lines(text);
    int number = 0;
    mark(name, 1);
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line == "#pragma once") line.clear();
      constexpr std::string_view kInclude = "#include \"";
      if (!line.starts_with(kInclude)) {
        out_ += line + "\n";
        continue;
      }
      const std::string header = line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
      if (seen_.insert(header).second) add(header, header_text(header, planted_));
      mark(name, number + 1);
    }
  }

  const std::string& text() const { return out_; }
  bool has(std::string_view header) const { return seen_.contains(fmt::format("{}{}", kFolder, header)); }

 private:
  void mark(const std::string& name, int line) { out_ += fmt::format("#line {} \"{}\"\n", line, name); }

  std::span<const Substitution> planted_;
  std::set<std::string> seen_;
  std::string out_;
};

}  // namespace

PlantedKernel::PlantedKernel(registry::KernelPtr original, std::span<const Substitution> planted,
                             bool launches_cooperatively)
    : Kernel(original->metadata()),
      original_(std::move(original)),
      planted_(planted),
      launches_cooperatively_(launches_cooperatively) {
  const compile::Source source = original_->source();
  symbol_ = source.symbol;
  Expansion expansion(planted);
  expansion.add(name() + ".cu", source.text);
  for (const Substitution& each : planted) {
    if (!expansion.has(each.header)) throw InvalidArgument(fmt::format("{} does not use {}", name(), each.header));
  }
  text_ = expansion.text();
}

std::vector<std::string> PlantedKernel::lines_at(const emulator::CodeLocation& location) const {
  std::vector<std::string> found;
  for (const emulator::SourceLine& at : location.source) {
    const std::size_t folder = at.file.rfind(kFolder);
    if (folder == std::string::npos) continue;  // the kernel's own text
    std::istringstream lines(header_text(at.file.substr(folder), planted_));
    std::string line;
    for (int number = 0; number < at.line; ++number) std::getline(lines, line);
    line.erase(0, line.find_first_not_of(' '));
    found.push_back(line);
  }
  return found;
}

}  // namespace tilewright::conformance
