#include "tilewright/compile/assembler.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/child_process.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

constexpr std::size_t kMaxCubinBytes = std::size_t{256} << 20;

std::string failure_of(const ChildResult& result, double timeout_s) {
  if (result.timed_out)
    return fmt::format("ptxas was killed after {} s, the limit set by TILEWRIGHT_COMPILE_TIMEOUT", timeout_s);
  if (result.signal != 0) return fmt::format("ptxas was killed by signal {}", result.signal);
  if (result.exit_code != 0) return fmt::format("ptxas exited with code {}", result.exit_code);
  return {};
}

bool has_message_c75(std::string_view line) {
  constexpr std::string_view kPrefix = "(C75";
  const std::size_t at = line.find(kPrefix);
  return at != std::string_view::npos && line.size() > at + 6 && std::isdigit(line[at + 4]) != 0 &&
         std::isdigit(line[at + 5]) != 0 && line[at + 6] == ')';
}

}  // namespace

std::string lost_performance(std::string_view log) {
  std::string found;
  for (const std::string& line : split(std::string(log), '\n')) {
    if (has_message_c75(line)) found += line + "\n";
  }
  return found;
}

Assembler::Assembler(const ToolchainOptions& options, const Environment& environment)
    : options_(options), temporary_dir_(environment.temporary_dir), search_(find_tool("ptxas", environment)) {
  identity_ = search_.path ? fmt::format("ptxas {}", content_identity(*search_.path)) : std::string("no assembler");
}

Assembler::Assembled Assembler::assemble(const Source& source, const std::string& ptx) const {
  if (!search_.path) throw_not_found("ptxas, which assembles the PTX of kernels in MLIR,", search_, kInstallNvcc);
  const ScopedFolder folder(temporary_dir_);
  write_new_file(folder.path() + "/kernel.ptx", ptx);
  std::vector<std::string> arguments = {*search_.path, "-v", "-arch=" + source.target.name(), "-o", "kernel.cubin"};
  if (source.line_info) arguments.emplace_back("-lineinfo");
  if (source.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", source.max_registers));
  arguments.emplace_back("kernel.ptx");
  const ChildResult result = run_child({std::move(arguments),
                                        {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder.path()},
                                        folder.path(),
                                        options_.timeout_s});
  Assembled assembled{.cubin = {}, .log = result.output, .error = failure_of(result, options_.timeout_s)};
  if (!assembled.error.empty()) return assembled;
  if (!lost_performance(assembled.log).empty()) {
    assembled.error = "ptxas ignored setmaxnreg or serialised wgmma";
    assembled.log = lost_performance(assembled.log);
    return assembled;
  }
  assembled.cubin = read_file(folder.path() + "/kernel.cubin", kMaxCubinBytes);
  return assembled;
}

}  // namespace tilewright::compile
