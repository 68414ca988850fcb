// The library tilewright_mlir: MLIR text to PTX, in process. See abi.h for its functions, and docs/decisions/
// mlir_lowering.md for the passes and why LLVM's middle-end is not run.
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <mlir/Conversion/ArithToLLVM/ArithToLLVM.h>
#include <mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h>
#include <mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h>
#include <mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Arith/Transforms/Passes.h>
#include <mlir/Dialect/ControlFlow/IR/ControlFlow.h>
#include <mlir/Dialect/LLVMIR/LLVMDialect.h>
#include <mlir/Dialect/LLVMIR/NVVMDialect.h>
#include <mlir/Dialect/LLVMIR/Transforms/Passes.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/MLIRContext.h>
#include <mlir/Parser/Parser.h>
#include <mlir/Pass/PassManager.h>
#include <mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Export.h>
#include <mlir/Transforms/Passes.h>

#include <chrono>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tilewright/compile/mlir_shim/abi.h"

static_assert(LLVM_VERSION_MAJOR == TILEWRIGHT_MLIR_LLVM_MAJOR);

// LLVM declares these in headers that name every target it was built for.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace {

using Clock = std::chrono::steady_clock;

// A fatal error of LLVM, for example an instruction that the target does not have. LLVM ends the process unless the
// handler does not return, so the handler jumps back into compile() of its thread. What LLVM had allocated is leaked.
struct FatalError {
  std::jmp_buf back;
  std::string message;
};
thread_local FatalError* fatal_error = nullptr;

void handle_fatal_error(void* /*unused*/, const char* message, bool /*wants_crash_report*/) {
  if (fatal_error == nullptr) return;
  fatal_error->message = message;
  std::longjmp(fatal_error->back, 1);
}

const mlir::DialectRegistry& dialects() {
  static const mlir::DialectRegistry& all = [&]() -> const mlir::DialectRegistry& {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::install_fatal_error_handler(handle_fatal_error);
    auto& registry = *new mlir::DialectRegistry;
    registry.insert<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect, mlir::arith::ArithDialect,
                    mlir::cf::ControlFlowDialect>();
    mlir::registerBuiltinDialectTranslation(registry);
    mlir::registerLLVMDialectTranslation(registry);
    mlir::registerNVVMDialectTranslation(registry);
    mlir::registerConvertNVVMToLLVMInterface(registry);
    return registry;
  }();
  return all;
}

// Diagnostics as "file:line:column: error: text". An operation's own loc("kernel.tw":3:1) is named as it is written.
class Log {
 public:
  void add(const mlir::Diagnostic& diagnostic) {
    std::string place = "unknown location";
    diagnostic.getLocation()->walk([&](mlir::Location part) {
      const auto line = llvm::dyn_cast<mlir::FileLineColLoc>(part);
      if (!line) return mlir::WalkResult::advance();
      place = line.getFilename().str() + ":" + std::to_string(line.getLine()) + ":" + std::to_string(line.getColumn());
      return mlir::WalkResult::interrupt();
    });
    add(place, kind(diagnostic.getSeverity()), diagnostic.str());
    for (const mlir::Diagnostic& note : diagnostic.getNotes()) add(note);
  }
  void add(const llvm::DiagnosticInfo& diagnostic) {
    if (diagnostic.getSeverity() != llvm::DS_Error && diagnostic.getSeverity() != llvm::DS_Warning) return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    diagnostic.print(printer);
    const bool is_error = diagnostic.getSeverity() == llvm::DS_Error;
    add("LLVM", is_error ? "error" : "warning", text);
    has_error_ = has_error_ || is_error;
  }
  void add(const std::string& place, const char* what, const std::string& text) {
    text_ += place + ": " + what + ": " + text + "\n";
  }
  bool has_error() const { return has_error_; }
  const std::string& text() const { return text_; }

 private:
  static const char* kind(mlir::DiagnosticSeverity severity) {
    switch (severity) {
      case mlir::DiagnosticSeverity::Note:
        return "note";
      case mlir::DiagnosticSeverity::Warning:
        return "warning";
      case mlir::DiagnosticSeverity::Error:
        return "error";
      case mlir::DiagnosticSeverity::Remark:
        return "remark";
    }
    return "error";
  }

  std::string text_;
  bool has_error_ = false;
};

void add_passes(mlir::PassManager& passes, bool line_info) {
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::arith::createArithExpandOpsPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createConvertNVVMToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (!line_info) return;
  // The default, LineTablesOnly, makes NVPTX print ".target sm_90a, debug", for which ptxas ignores setmaxnreg.
  mlir::LLVM::DIScopeForLLVMFuncOpPassOptions options;
  options.emissionKind = mlir::LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass(options));
}

// MLIR 22 cannot mark inline assembly as convergent, so code generation might duplicate a barrier.
void mark_convergent(llvm::Module& module) {
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call != nullptr && call->isInlineAsm()) call->setConvergent();
    }
  }
}

// Writes to a string. NVPTX prints to a stream that can report its position.
class StringStream final : public llvm::raw_pwrite_stream {
 public:
  explicit StringStream(std::string& text) : raw_pwrite_stream(/*Unbuffered=*/true), text_(text) {}

 private:
  void write_impl(const char* bytes, std::size_t size) override { text_.append(bytes, size); }
  void pwrite_impl(const char* bytes, std::size_t size, std::uint64_t offset) override {
    text_.replace(offset, size, bytes, size);
  }
  std::uint64_t current_pos() const override { return text_.size(); }

  std::string& text_;
};

std::unique_ptr<llvm::TargetMachine> make_target_machine(const TilewrightMlirInput& input, Log& log) {
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) {
    log.add(input.file_name, "error", error);
    return nullptr;
  }
  // At Less, NVPTX generates the same code as at higher levels; at None, it copies wgmma's accumulators.
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, input.chip, "+ptx" + std::to_string(input.ptx_version), {}, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Less));
  if (machine->getTargetCPU() != input.chip || !machine->getMCSubtargetInfo()->isCPUStringValid(input.chip)) {
    log.add(input.file_name, "error",
            "LLVM " LLVM_VERSION_STRING " does not know the target " + std::string(input.chip));
    return nullptr;
  }
  return machine;
}

// Wall time since the last call.
class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

/// Returns the PTX, or nothing after an error, which is in the log.
std::optional<std::string> translate(const TilewrightMlirInput& input, Log& log, TilewrightMlirOutput& times) {
  Stopwatch stopwatch;
  mlir::MLIRContext context(dialects(), mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const mlir::ScopedDiagnosticHandler handler(&context, [&](const mlir::Diagnostic& diagnostic) {
    log.add(diagnostic);
    return mlir::success();
  });
  const mlir::ParserConfig config(&context);
  const mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>({input.text, input.text_bytes}, config, input.file_name);
  times.parse_ms = stopwatch.lap();
  if (!module) return std::nullopt;

  mlir::PassManager passes(&context);
  add_passes(passes, input.line_info != 0);
  const bool passed = mlir::succeeded(passes.run(*module));
  times.passes_ms = stopwatch.lap();
  if (!passed) return std::nullopt;

  llvm::LLVMContext llvm_context;
  llvm_context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* diagnostic, void* to) { static_cast<Log*>(to)->add(*diagnostic); }, &log);
  const std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(input, log);
  if (!machine) return std::nullopt;
  const std::unique_ptr<llvm::Module> llvm_module =
      mlir::translateModuleToLLVMIR(*module, llvm_context, input.file_name);
  if (!llvm_module) return std::nullopt;
  llvm_module->setTargetTriple(machine->getTargetTriple());
  llvm_module->setDataLayout(machine->createDataLayout());
  mark_convergent(*llvm_module);
  times.translate_ms = stopwatch.lap();

  std::string ptx;
  StringStream stream(ptx);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    log.add(input.file_name, "error", "LLVM cannot print PTX");
    return std::nullopt;
  }
  codegen.run(*llvm_module);
  times.codegen_ms = stopwatch.lap();
  if (log.has_error()) return std::nullopt;
  return ptx;
}

char* copy_of(const std::string& text, std::size_t& bytes) {
  bytes = text.size();
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

#define TILEWRIGHT_MLIR_EXPORT extern "C" __attribute__((visibility("default")))

TILEWRIGHT_MLIR_EXPORT int tilewright_mlir_abi(void) { return TILEWRIGHT_MLIR_ABI; }

TILEWRIGHT_MLIR_EXPORT const char* tilewright_mlir_llvm_version(void) { return LLVM_VERSION_STRING; }

TILEWRIGHT_MLIR_EXPORT void tilewright_mlir_compile(const TilewrightMlirInput* input, TilewrightMlirOutput* output) {
  *output = {};
  Log log;
  std::optional<std::string> ptx;
  FatalError error;
  fatal_error = &error;
  if (setjmp(error.back) == 0) {
    ptx = translate(*input, log, *output);
  } else {
    log.add("LLVM", "error", error.message);
  }
  fatal_error = nullptr;
  output->log = copy_of(log.text(), output->log_bytes);
  if (ptx) output->ptx = copy_of(*ptx, output->ptx_bytes);
}

TILEWRIGHT_MLIR_EXPORT void tilewright_mlir_free(TilewrightMlirOutput* output) {
  std::free(output->ptx);
  std::free(output->log);
  *output = {};
}
