#include "tilewright/compile/nvrtc_job.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tilewright/compile/job_message.hpp"
#include "tilewright/compile/language.hpp"

namespace tilewright::compile {
namespace {

// The functions of nvrtc.h used here. nvrtcResult is an int, 0 meaning success; a program is an opaque pointer.
struct NvrtcFunctions {
  using Program = struct OpaqueProgram*;
  using GetSize = int (*)(Program, std::size_t*);
  using GetText = int (*)(Program, char*);

  int major = 0;
  int minor = 0;
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(Program*, const char* text, const char* name, int header_count, const char* const* headers,
                const char* const* header_names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int option_count, const char* const* options) = nullptr;
  GetSize log_size = nullptr, ptx_size = nullptr, cubin_size = nullptr;
  GetText log = nullptr, ptx = nullptr, cubin = nullptr;
};

// NVRTC and its builtins stay mapped, because loading them again would take tens of milliseconds.
void* open_library(const std::string& path) { return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

// NVRTC opens its builtins by soname, which the loader may not find or find elsewhere. Loading the library that lies
// beside NVRTC beforehand makes the loader use that one.
void load_builtins(const std::string& nvrtc_path, int major, int minor) {
  const std::string folder = nvrtc_path.substr(0, nvrtc_path.rfind('/') + 1);
  open_library(folder + "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor));
}

/// Loads the library. On failure returns null and sets `error`.
std::unique_ptr<const NvrtcFunctions> load(const std::string& path, std::string& error) {
  void* const library = open_library(path);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    error = "cannot load " + path + ": " + (reason == nullptr ? "unknown error" : reason);
    return nullptr;
  }
  auto functions = std::make_unique<NvrtcFunctions>();
  const auto resolve = [&](const char* name, auto& function) {
    void* const address = ::dlsym(library, name);
    std::memcpy(&function, &address, sizeof address);
    if (address == nullptr && error.empty()) error = path + " has no function " + name;
  };
  resolve("nvrtcVersion", functions->version);
  resolve("nvrtcGetErrorString", functions->error_string);
  resolve("nvrtcCreateProgram", functions->create);
  resolve("nvrtcDestroyProgram", functions->destroy);
  resolve("nvrtcCompileProgram", functions->compile);
  resolve("nvrtcGetProgramLogSize", functions->log_size);
  resolve("nvrtcGetProgramLog", functions->log);
  resolve("nvrtcGetPTXSize", functions->ptx_size);
  resolve("nvrtcGetPTX", functions->ptx);
  resolve("nvrtcGetCUBINSize", functions->cubin_size);
  resolve("nvrtcGetCUBIN", functions->cubin);
  if (!error.empty()) return nullptr;
  functions->version(&functions->major, &functions->minor);
  load_builtins(path, functions->major, functions->minor);
  return functions;
}

/// load(), memoised per path. A failure is not memoised: the next call tries again.
const NvrtcFunctions* functions_of(const std::string& path, std::string& error) {
  static std::mutex& mutex = *new std::mutex;  // never destroyed: threads may compile while the process exits
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const NvrtcFunctions>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<const NvrtcFunctions>& functions = loaded[path];
  if (!functions) functions = load(path, error);
  return functions.get();
}

// A virtual architecture makes NVRTC stop after PTX, which saves the time of ptxas when only the emulator is used.
std::vector<std::string> options_of(const NvrtcJob& job, const NvrtcFunctions& nvrtc) {
  const bool has_cache = nvrtc.major > 12 || (nvrtc.major == 12 && nvrtc.minor >= 9);
  std::vector<std::string> options = {"--gpu-architecture=" + job.architecture, std::string(kLanguage)};
  if (job.wants_cubin) options.emplace_back("--ptxas-options=-v");
  if (job.line_info) options.emplace_back("-lineinfo");
  if (job.max_registers > 0) options.push_back("--maxrregcount=" + std::to_string(job.max_registers));
  if (has_cache && !job.nvrtc_cache) options.emplace_back("--no-cache");
  for (const std::string& folder : job.include_folders) options.push_back("--include-path=" + folder);
  if (nvrtc.major >= 13 && job.include_folders.empty()) options.emplace_back(kNvrtcMinimal);
  return options;
}

// An nvrtcProgram. error() describes the first call that failed; compile() does nothing after a failure.
class NvrtcProgram {
 public:
  NvrtcProgram(const NvrtcFunctions& nvrtc, const NvrtcJob& job) : nvrtc_(nvrtc) {
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : job.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    check("nvrtcCreateProgram", nvrtc.create(&program_, job.text.c_str(), job.file_name.c_str(),
                                             static_cast<int>(names.size()), texts.data(), names.data()));
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;
  ~NvrtcProgram() {
    if (program_ != nullptr) nvrtc_.destroy(&program_);
  }

  const std::string& error() const { return error_; }

  void compile(const std::vector<std::string>& options) {
    if (!error_.empty()) return;
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const int result = nvrtc_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
    log_ = text("nvrtcGetProgramLog", nvrtc_.log_size, nvrtc_.log);
    check("nvrtcCompileProgram", result);
  }

  // NVRTC's sizes of log and PTX include the terminating NUL, which text() removes.
  const std::string& log() const { return log_; }
  std::string ptx() { return text("nvrtcGetPTX", nvrtc_.ptx_size, nvrtc_.ptx); }
  std::string cubin() { return bytes("nvrtcGetCUBIN", nvrtc_.cubin_size, nvrtc_.cubin); }

 private:
  bool check(const char* call, int result) {
    if (result == 0) return error_.empty();
    if (error_.empty())
      error_ = std::string(call) + ": " + nvrtc_.error_string(result) + " (" + std::to_string(result) + ")";
    return false;
  }
  std::string bytes(const char* call, NvrtcFunctions::GetSize get_size, NvrtcFunctions::GetText get) {
    std::size_t size = 0;
    if (!check(call, get_size(program_, &size))) return {};
    std::string result(size, '\0');
    check(call, get(program_, result.data()));
    return result;
  }
  std::string text(const char* call, NvrtcFunctions::GetSize get_size, NvrtcFunctions::GetText get) {
    std::string result = bytes(call, get_size, get);
    while (!result.empty() && result.back() == '\0') result.pop_back();
    return result;
  }

  const NvrtcFunctions& nvrtc_;
  NvrtcFunctions::Program program_ = nullptr;
  std::string log_;
  std::string error_;
};

}  // namespace

NvrtcOutcome run(const NvrtcJob& job) {
  using Status = NvrtcOutcome::Status;
  NvrtcOutcome outcome;
  const NvrtcFunctions* const nvrtc = functions_of(job.library, outcome.error);
  if (nvrtc == nullptr) return outcome;
  NvrtcProgram program(*nvrtc, job);
  program.compile(options_of(job, *nvrtc));
  if (program.error().empty()) outcome.ptx = program.ptx();
  if (program.error().empty() && job.wants_cubin) outcome.cubin = program.cubin();
  outcome.log = program.log();
  outcome.error = program.error();
  outcome.status = outcome.error.empty() ? Status::compiled : Status::failed;
  return outcome;
}

std::string encode(const NvrtcJob& job) {
  Encoder encoder;
  encoder.number(static_cast<std::uint64_t>(JobKind::nvrtc));
  encoder.text(job.library).text(job.file_name).text(job.text).text(job.architecture);
  encoder.number(job.wants_cubin).number(job.line_info).number(job.nvrtc_cache);
  encoder.number(static_cast<std::uint64_t>(job.max_registers)).number(job.headers.size());
  for (const auto& [name, text] : job.headers) encoder.text(name).text(text);
  encoder.number(job.include_folders.size());
  for (const std::string& folder : job.include_folders) encoder.text(folder);
  return std::move(encoder).take();
}

std::string encode(const NvrtcOutcome& outcome) {
  Encoder encoder;
  encoder.number(static_cast<std::uint64_t>(outcome.status)).text(outcome.error).text(outcome.log);
  encoder.text(outcome.ptx).text(outcome.cubin);
  return std::move(encoder).take();
}

std::optional<NvrtcJob> decode_job(std::string_view bytes) {
  Decoder decoder(bytes);
  if (decoder.number() != static_cast<std::uint64_t>(JobKind::nvrtc)) return std::nullopt;
  NvrtcJob job;
  job.library = decoder.text();
  job.file_name = decoder.text();
  job.text = decoder.text();
  job.architecture = decoder.text();
  job.wants_cubin = decoder.number() != 0;
  job.line_info = decoder.number() != 0;
  job.nvrtc_cache = decoder.number() != 0;
  job.max_registers = static_cast<int>(decoder.number());
  for (std::uint64_t left = decoder.number(); left > 0 && !decoder.failed(); --left) {
    std::string name = decoder.text();
    job.headers.emplace_back(std::move(name), decoder.text());
  }
  for (std::uint64_t left = decoder.number(); left > 0 && !decoder.failed(); --left)
    job.include_folders.push_back(decoder.text());
  if (!decoder.is_complete()) return std::nullopt;
  return job;
}

std::optional<NvrtcOutcome> decode_outcome(std::string_view bytes) {
  Decoder decoder(bytes);
  NvrtcOutcome outcome;
  const std::uint64_t status = decoder.number();
  outcome.error = decoder.text();
  outcome.log = decoder.text();
  outcome.ptx = decoder.text();
  outcome.cubin = decoder.text();
  if (!decoder.is_complete() || status > static_cast<std::uint64_t>(NvrtcOutcome::Status::not_loaded))
    return std::nullopt;
  outcome.status = static_cast<NvrtcOutcome::Status>(status);
  return outcome;
}

}  // namespace tilewright::compile
