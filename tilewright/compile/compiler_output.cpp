#include "tilewright/compile/compiler_output.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/resource_usage.hpp"

namespace tilewright::compile {
namespace {

// The rest of the line after the first `tag`.
std::string_view after(std::string_view text, std::string_view tag) {
  const std::size_t found = text.find(tag);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = text.substr(found + tag.size());
  return rest.substr(0, rest.find('\n'));
}

// The names of the entries of PTX.
std::vector<std::string> entries_of(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ";
  std::vector<std::string> names;
  for (std::size_t at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    const std::size_t end = ptx.find_first_of("( \t\n", at);
    names.emplace_back(ptx.substr(at, end == std::string_view::npos ? end : end - at));
  }
  return names;
}

}  // namespace

std::string compiler_named_in(std::string_view ptx) {
  const std::string_view head = ptx.substr(0, ptx.find(".version"));
  const std::string_view release = after(head, "release ");  // "13.0, V13.0.88"
  const std::string_view build = after(head, "Compiler Build ID: ");
  if (release.empty() || build.empty()) return {};
  std::string name = fmt::format("{} {}", release, build);
  std::erase(name, ',');
  return name;
}

Artifact make_artifact(const Source& source, std::string compiler, CompilerOutput output,
                       std::chrono::steady_clock::time_point started) {
  const ResourceUsage usage = parse_resource_usage(output.log, source.symbol);
  Artifact artifact;
  artifact.name = source.name;
  artifact.symbol = source.symbol;
  artifact.target = source.target;
  artifact.compiler = std::move(compiler);
  if (source.outputs.cubin) {
    const auto bytes = std::as_bytes(std::span(output.cubin));
    artifact.cubin.assign(bytes.begin(), bytes.end());
  }
  if (source.outputs.ptx) artifact.ptx = std::move(output.ptx);
  artifact.registers = usage.registers;
  artifact.spill_bytes = usage.spill_bytes;
  artifact.static_smem_bytes = usage.static_smem_bytes;
  artifact.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  artifact.description = source.description;
  artifact.source = source_digest(source).hex();
  return artifact;
}

void check_has_kernel(const Artifact& artifact) {
  if (artifact.ptx.empty()) return;
  const std::vector<std::string> names = entries_of(artifact.ptx);
  if (std::ranges::find(names, artifact.symbol) != names.end()) return;
  std::string found = "no kernel (__global__ function)";
  if (!names.empty()) found = fmt::format("the kernels {}", printable(fmt::format("{}", fmt::join(names, ", ")), 400));
  throw CompileError(
      fmt::format("{}: the source must define the kernel extern \"C\" {}, but the module has {}; without extern \"C\" "
                  "the compiler changes the name",
                  artifact.name, artifact.symbol, found));
}

}  // namespace tilewright::compile
