#include "tilewright/compile/nvrtc.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/compiler_output.hpp"
#include "tilewright/compile/compiler_process.hpp"
#include "tilewright/compile/failed_source.hpp"
#include "tilewright/compile/include_graph.hpp"
#include "tilewright/compile/language.hpp"
#include "tilewright/compile/nvrtc_job.hpp"
#include "tilewright/compile/ptx_lines.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {
namespace {

NvrtcJob job_of(const Source& source, const std::string& library, bool nvrtc_cache) {
  NvrtcJob job{.library = library,
               .file_name = source.name + ".cu",
               .text = source.text,
               .headers = {},
               .include_folders = source.include_folders,
               .architecture = source.outputs.cubin ? source.target.name() : source.target.virtual_name(),
               .wants_cubin = source.outputs.cubin,
               .line_info = source.line_info,
               .nvrtc_cache = nvrtc_cache,
               .max_registers = source.max_registers};
  for (const UserHeader& header : source.headers) job.headers.emplace_back(header.name, header.text);
  for (const Header& header : IncludeGraph::of_device_headers().included_by(source))
    job.headers.emplace_back(header.name, header.text);
  return job;
}

// Compiles in this process. NVRTC cannot be interrupted there, so exit() waits for the compile to end.
NvrtcOutcome run_here(const NvrtcJob& job) {
  const LongWork work(LongWork::Kind::uninterruptible);
  return run(job);
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(const ToolchainOptions& options, const Environment& environment)
    : options_(options),
      temporary_dir_(environment.temporary_dir),
      stays_in_process_(options.backend == Backend::nvrtc_in_process) {
  const Search search = find_nvrtc(environment);
  if (!search.path) throw_not_found("NVRTC (libnvrtc.so.13 or .12)", search, kInstallNvrtc);
  path_ = *search.path;
  identity_ = fmt::format("nvrtc {} {} {}", build_identity(path_), kLanguage, kNvrtcMinimal);
}

Artifact NvrtcCompiler::compile(const Source& source) const {
  validate(source).or_throw();
  const auto started = std::chrono::steady_clock::now();
  const auto fail = [&](std::string_view why, std::string_view log) {
    throw_compile_error(source, why, dump_source(source, options_.dump_dir, temporary_dir_), log);
  };
  const auto run_job = [&](const NvrtcJob& job) -> NvrtcOutcome {
    if (stays_in_process_) return run_here(job);
    const CompilerLimits limits{options_.timeout_s, options_.memory_bytes, temporary_dir_};
    const CompilerReply reply = run_in_compiler_process(encode(job), limits);
    if (reply.outcome) {
      if (std::optional<NvrtcOutcome> received = decode_outcome(*reply.outcome)) return *std::move(received);
    }
    if (!reply.never_started) fail(failure_of(reply, limits, "NVRTC"), {});
    stays_in_process_ = true;
    return run_here(job);
  };
  NvrtcOutcome outcome = run_job(job_of(source, path_, options_.nvrtc_cache));
  if (outcome.status == NvrtcOutcome::Status::not_loaded)
    throw ToolchainNotFound(fmt::format("{}\nInstall NVRTC with: {}", outcome.error, kInstallNvrtc));
  if (outcome.status == NvrtcOutcome::Status::failed) {
    if (source.outputs.cubin && outcome.log.find("ptxas") != std::string::npos) {
      Source without_assembly = source;
      without_assembly.outputs.cubin = false;
      outcome.log = with_source_lines(outcome.log, run_job(job_of(without_assembly, path_, false)).ptx);
    }
    fail(outcome.error, outcome.log);
  }
  CompilerOutput output{
      .cubin = std::move(outcome.cubin), .ptx = std::move(outcome.ptx), .log = std::move(outcome.log)};
  if (const std::string lost = lost_performance(output.log); source.refuses_lost_performance && !lost.empty())
    fail(kLostPerformance, with_source_lines(lost, output.ptx));
  std::string compiler = fmt::format("nvrtc {}", compiler_named_in(output.ptx));
  return make_artifact(source, std::move(compiler), std::move(output), started);
}

}  // namespace tilewright::compile
