#include "tilewright/compile/assembler.hpp"

#include <cctype>
#include <optional>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/child_process.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/nvrtc_job.hpp"
#include "tilewright/compile/ptx_in_cuda.hpp"

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

Search find_assembler(const Environment& environment) {
  Search search = find_tool("ptxas", environment);
  if (search.path) return search;
  Search nvrtc = find_nvrtc(environment);
  search.path = std::move(nvrtc.path);
  search.places.insert(search.places.end(), nvrtc.places.begin(), nvrtc.places.end());
  return search;
}

Assembler::Assembler(const ToolchainOptions& options, const Environment& environment)
    : limits_{options.timeout_s, options.memory_bytes, environment.temporary_dir},
      stays_in_process_(options.backend == Backend::nvrtc_in_process),
      ptxas_(find_tool("ptxas", environment)),
      nvrtc_(ptxas_.path ? Search{} : find_nvrtc(environment)),
      identity_(ptxas_.path   ? fmt::format("ptxas {}", content_identity(*ptxas_.path))
                : nvrtc_.path ? fmt::format("nvrtc {}", build_identity(*nvrtc_.path))
                              : std::string("no assembler")) {}

Assembler::Assembled Assembler::assemble(const Source& source, const std::string& ptx) const {
  if (!ptxas_.path && !nvrtc_.path) throw_not_found("ptxas, which assembles PTX,", ptxas_, kInstallNvcc);
  Assembled assembled = ptxas_.path ? run_ptxas(source, ptx) : run_nvrtc(source, ptx);
  if (assembled.error.empty() && !lost_performance(assembled.log).empty()) {
    assembled.error = kLostPerformance;
    assembled.log = lost_performance(assembled.log);
  }
  return assembled;
}

Assembler::Assembled Assembler::run_ptxas(const Source& source, const std::string& ptx) const {
  const ScopedFolder folder(limits_.temporary_dir);
  write_new_file(folder.path() + "/kernel.ptx", ptx);
  std::vector<std::string> arguments = {*ptxas_.path, "-v", "-arch=" + source.target.name(), "-o", "kernel.cubin"};
  if (source.line_info) arguments.emplace_back("-lineinfo");
  if (source.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", source.max_registers));
  arguments.emplace_back("kernel.ptx");
  const ChildResult result = run_child({std::move(arguments),
                                        {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder.path()},
                                        folder.path(),
                                        limits_.timeout_s});
  Assembled assembled{.cubin = {}, .log = result.output, .error = failure_of(result, limits_.timeout_s)};
  if (assembled.error.empty()) assembled.cubin = read_file(folder.path() + "/kernel.cubin", kMaxCubinBytes);
  return assembled;
}

Assembler::Assembled Assembler::run_nvrtc(const Source& source, const std::string& ptx) const {
  const Result<std::string> text = ptx_in_cuda(ptx, source.symbol);
  if (!text) {
    return {.cubin = {},
            .log = {},
            .error = fmt::format("{}. ptxas can; install it with: {}", text.reason(), kInstallNvcc)};
  }
  const NvrtcJob job{.library = *nvrtc_.path,
                     .file_name = source.name + ".cu",
                     .text = *text,
                     .headers = {},
                     .include_folders = {},
                     .architecture = source.target.name(),
                     .line_info = false,
                     .max_registers = source.max_registers};
  std::optional<NvrtcOutcome> outcome;
  if (!stays_in_process_) {
    const CompilerReply reply = run_in_compiler_process(encode(job), limits_);
    if (reply.outcome) outcome = decode_outcome(*reply.outcome);
    if (!outcome && !reply.never_started)
      return {.cubin = {}, .log = {}, .error = compile::failure_of(reply, limits_, "NVRTC")};
  }
  if (!outcome) {
    const LongWork work(LongWork::Kind::uninterruptible);
    outcome = run(job);
  }
  if (outcome->status == NvrtcOutcome::Status::not_loaded)
    throw ToolchainNotFound(fmt::format("{}\nInstall NVRTC with: {}", outcome->error, kInstallNvrtc));
  return {.cubin = std::move(outcome->cubin), .log = std::move(outcome->log), .error = std::move(outcome->error)};
}

}  // namespace tilewright::compile
