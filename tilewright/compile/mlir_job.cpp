#include "tilewright/compile/mlir_job.hpp"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tilewright/compile/job_message.hpp"
#include "tilewright/compile/mlir_shim/abi.h"

namespace tilewright::compile {
namespace {

struct ShimFunctions {
  decltype(&tilewright_mlir_abi) abi = nullptr;
  decltype(&tilewright_mlir_llvm_version) llvm_version = nullptr;
  decltype(&tilewright_mlir_compile) compile = nullptr;
  decltype(&tilewright_mlir_free) free = nullptr;
};

/// The result of opening the library: its functions, or the reason why there are none.
struct Opened {
  std::unique_ptr<const ShimFunctions> functions;
  MlirOutcome::Status status = MlirOutcome::Status::compiled;
  std::string error;
};

// The library stays mapped, because LLVM's static objects must outlive every thread that compiles.
Opened open_shim(const std::string& path) {
  const auto fail = [](MlirOutcome::Status status, std::string why) { return Opened{nullptr, status, std::move(why)}; };
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    return fail(MlirOutcome::Status::not_loaded,
                "cannot load " + path + ": " + (reason == nullptr ? "unknown error" : reason));
  }
  auto functions = std::make_unique<ShimFunctions>();
  std::string missing;
  const auto resolve = [&](const char* name, auto& function) {
    void* const address = ::dlsym(library, name);
    std::memcpy(&function, &address, sizeof address);
    if (address == nullptr && missing.empty()) missing = name;
  };
  resolve("tilewright_mlir_abi", functions->abi);
  resolve("tilewright_mlir_llvm_version", functions->llvm_version);
  resolve("tilewright_mlir_compile", functions->compile);
  resolve("tilewright_mlir_free", functions->free);
  if (!missing.empty()) return fail(MlirOutcome::Status::not_loaded, path + " has no function " + missing);
  if (const int abi = functions->abi(); abi != TILEWRIGHT_MLIR_ABI) {
    return fail(MlirOutcome::Status::unsupported, path + " has version " + std::to_string(abi) +
                                                      " of the interface, but this Tilewright needs version " +
                                                      std::to_string(TILEWRIGHT_MLIR_ABI));
  }
  const std::string llvm = functions->llvm_version();
  if (!llvm.starts_with(std::to_string(TILEWRIGHT_MLIR_LLVM_MAJOR) + ".")) {
    return fail(MlirOutcome::Status::unsupported, path + " contains LLVM " + llvm +
                                                      ", but this Tilewright needs LLVM " +
                                                      std::to_string(TILEWRIGHT_MLIR_LLVM_MAJOR));
  }
  return {std::move(functions), MlirOutcome::Status::compiled, {}};
}

/// open_shim(), memoised per path. A failure is not memoised: the next call tries again.
const ShimFunctions* functions_of(const std::string& path, MlirOutcome& outcome) {
  static std::mutex& mutex = *new std::mutex;  // never destroyed: threads may compile while the process exits
  static auto& opened = *new std::map<std::string, std::unique_ptr<const ShimFunctions>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<const ShimFunctions>& functions = opened[path];
  if (functions) return functions.get();
  Opened fresh = open_shim(path);
  functions = std::move(fresh.functions);
  outcome.status = fresh.status;
  outcome.error = std::move(fresh.error);
  return functions.get();
}

std::uint64_t microseconds(double ms) { return ms > 0 ? static_cast<std::uint64_t>(ms * 1000.0) : 0; }

}  // namespace

MlirOutcome run(const MlirJob& job) {
  MlirOutcome outcome;
  const ShimFunctions* const shim = functions_of(job.library, outcome);
  if (shim == nullptr) return outcome;
  const TilewrightMlirInput input{.text = job.text.c_str(),
                                  .text_bytes = job.text.size(),
                                  .file_name = job.file_name.c_str(),
                                  .chip = job.architecture.c_str(),
                                  .ptx_version = job.ptx_version,
                                  .line_info = job.line_info};
  TilewrightMlirOutput output{};
  shim->compile(&input, &output);
  outcome.llvm_version = shim->llvm_version();
  outcome.status = output.ptx == nullptr ? MlirOutcome::Status::failed : MlirOutcome::Status::compiled;
  if (output.ptx != nullptr) outcome.ptx.assign(output.ptx, output.ptx_bytes);
  if (output.log != nullptr) outcome.log.assign(output.log, output.log_bytes);
  outcome.stages_us = {microseconds(output.parse_ms), microseconds(output.passes_ms), microseconds(output.translate_ms),
                       microseconds(output.codegen_ms)};
  shim->free(&output);
  return outcome;
}

std::optional<std::string> mlir_llvm_version(const std::string& library, std::string& error) {
  MlirOutcome outcome;
  const ShimFunctions* const shim = functions_of(library, outcome);
  if (shim != nullptr) return shim->llvm_version();
  error = std::move(outcome.error);
  return std::nullopt;
}

std::string encode(const MlirJob& job) {
  Encoder encoder;
  encoder.number(static_cast<std::uint64_t>(JobKind::mlir));
  encoder.text(job.library).text(job.file_name).text(job.text).text(job.architecture);
  encoder.number(static_cast<std::uint64_t>(job.ptx_version)).number(job.line_info);
  return std::move(encoder).take();
}

std::string encode(const MlirOutcome& outcome) {
  Encoder encoder;
  encoder.number(static_cast<std::uint64_t>(outcome.status)).text(outcome.error).text(outcome.log);
  encoder.text(outcome.ptx).text(outcome.llvm_version);
  for (const std::uint64_t stage : outcome.stages_us) encoder.number(stage);
  return std::move(encoder).take();
}

std::optional<MlirJob> decode_mlir_job(std::string_view bytes) {
  Decoder decoder(bytes);
  if (decoder.number() != static_cast<std::uint64_t>(JobKind::mlir)) return std::nullopt;
  MlirJob job;
  job.library = decoder.text();
  job.file_name = decoder.text();
  job.text = decoder.text();
  job.architecture = decoder.text();
  job.ptx_version = static_cast<int>(decoder.number());
  job.line_info = decoder.number() != 0;
  if (!decoder.is_complete()) return std::nullopt;
  return job;
}

std::optional<MlirOutcome> decode_mlir_outcome(std::string_view bytes) {
  Decoder decoder(bytes);
  MlirOutcome outcome;
  const std::uint64_t status = decoder.number();
  outcome.error = decoder.text();
  outcome.log = decoder.text();
  outcome.ptx = decoder.text();
  outcome.llvm_version = decoder.text();
  for (std::uint64_t& stage : outcome.stages_us) stage = decoder.number();
  if (!decoder.is_complete() || status > static_cast<std::uint64_t>(MlirOutcome::Status::unsupported))
    return std::nullopt;
  outcome.status = static_cast<MlirOutcome::Status>(status);
  return outcome;
}

}  // namespace tilewright::compile
