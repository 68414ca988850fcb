#include "tilewright/compile/mlir_compiler.hpp"

#include <chrono>
#include <optional>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/compile/compiler_output.hpp"
#include "tilewright/compile/compiler_process.hpp"
#include "tilewright/compile/failed_source.hpp"
#include "tilewright/compile/mlir_job.hpp"
#include "tilewright/compile/ptx_lines.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {
namespace {

std::string find_library_or_throw(const Environment& environment) {
  const Search search = find_mlir(environment);
  if (!search.path)
    throw_not_found(fmt::format("{}, which compiles kernels in MLIR,", kMlirLibrary), search, kInstallMlir);
  return *search.path;
}

// Translates in this process. LLVM cannot be interrupted there, so exit() waits for the translation to end.
MlirOutcome run_here(const MlirJob& job) {
  const LongWork work(LongWork::Kind::uninterruptible);
  return run(job);
}

}  // namespace

int ptx_version(const Target& target) {
  if (target.sm == 88 || target.sm == 110) return 90;
  if (target.sm >= 100) return 88;
  if (target.sm >= 90) return 86;    // has the TMA load whose destination is the CTA's own shared memory
  return target.sm == 89 ? 84 : 80;  // 8.4 has the conversions and products of e4m3 and e5m2
}

MlirCompiler::MlirCompiler(const ToolchainOptions& options, const Environment& environment)
    : options_(options),
      temporary_dir_(environment.temporary_dir),
      path_(find_library_or_throw(environment)),
      assembler_(options, environment),
      identity_(fmt::format("mlir {} {}", build_identity(path_), assembler_.identity())),
      stays_in_process_(options.backend == Backend::nvrtc_in_process) {}

Artifact MlirCompiler::compile(const Source& source) const {
  validate(source).or_throw();
  const auto started = std::chrono::steady_clock::now();
  const MlirJob job{.library = path_,
                    .file_name = source.name + ".mlir",
                    .text = source.text,
                    .architecture = source.target.name(),
                    .ptx_version = ptx_version(source.target),
                    .line_info = source.line_info};
  const auto fail = [&](std::string_view why, std::string_view log) {
    throw_compile_error(source, why, dump_source(source, options_.dump_dir, temporary_dir_), log);
  };
  std::optional<MlirOutcome> received;
  if (!stays_in_process_) {
    const CompilerLimits limits{options_.timeout_s, options_.memory_bytes, temporary_dir_};
    const CompilerReply reply = run_in_compiler_process(encode(job), limits);
    if (reply.outcome) received = decode_mlir_outcome(*reply.outcome);
    if (!received && !reply.never_started) fail(failure_of(reply, limits, "MLIR"), {});
    stays_in_process_ = reply.never_started;
  }
  MlirOutcome outcome = received ? *std::move(received) : run_here(job);
  if (outcome.status == MlirOutcome::Status::not_loaded || outcome.status == MlirOutcome::Status::unsupported)
    throw ToolchainNotFound(fmt::format("{}\nInstall it with: {}", outcome.error, kInstallMlir));
  if (outcome.status == MlirOutcome::Status::failed) fail("the MLIR text was refused", outcome.log);
  if (outcome.ptx.find(fmt::format(".entry {}(", source.symbol)) == std::string::npos)
    fail(fmt::format("the module has no llvm.func @{} with the attribute nvvm.kernel", source.symbol), outcome.log);
  CompilerOutput output{.cubin = {}, .ptx = std::move(outcome.ptx), .log = {}};
  if (source.outputs.cubin) {
    Assembler::Assembled assembled = assembler_.assemble(source, output.ptx);
    if (!assembled.error.empty()) fail(assembled.error, with_source_lines(assembled.log, output.ptx));
    output.cubin = std::move(assembled.cubin);
    output.log = std::move(assembled.log);
  }
  return make_artifact(source, fmt::format("mlir LLVM {}, {}", outcome.llvm_version, assembler_.identity()),
                       std::move(output), started);
}

}  // namespace tilewright::compile
