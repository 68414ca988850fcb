#include "tilewright/compile/nvrtc.hpp"

#include <array>
#include <chrono>
#include <filesystem>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/compiled.hpp"
#include "tilewright/compile/failed_source.hpp"
#include "tilewright/compile/shared_library.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {

// The subset of nvrtc.h that is used here: nvrtcResult is an int, 0 is success; a program is an opaque pointer.
struct NvrtcFunctions {
  using Program = struct OpaqueProgram*;
  using GetSize = int (*)(Program, std::size_t*);
  using GetText = int (*)(Program, char*);

  SharedLibrary library;
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

namespace {

constexpr std::string_view kLanguage = "-std=c++20";
// Leaves out textures and the device runtime, which no kernel of this field uses, and some 10 ms a compile.
constexpr std::string_view kMinimal = "--minimal";

template <class Function>
void resolve(const SharedLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.symbol(name));
  if (function == nullptr) throw ToolchainNotFound(fmt::format("{} has no function {}", library.path(), name));
}

// NVRTC opens its builtins by soname, from wherever the loader looks; one that is loaded already is taken.
void load_builtins(const std::string& nvrtc_path, int major, int minor) {
  const auto folder = std::filesystem::path(nvrtc_path).parent_path();
  SharedLibrary::open(folder / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor), SharedLibrary::Load::now);
}

std::unique_ptr<const NvrtcFunctions> load_nvrtc(const std::string& path) {
  std::string error;
  auto library = SharedLibrary::open(path, SharedLibrary::Load::now, &error);
  if (!library) {
    throw ToolchainNotFound(fmt::format("cannot load {}: {}\nInstall NVRTC with: {}", path, error, kInstallNvrtc));
  }
  auto functions = std::make_unique<NvrtcFunctions>(NvrtcFunctions{std::move(*library)});
  const SharedLibrary& from = functions->library;
  resolve(from, "nvrtcVersion", functions->version);
  resolve(from, "nvrtcGetErrorString", functions->error_string);
  resolve(from, "nvrtcCreateProgram", functions->create);
  resolve(from, "nvrtcDestroyProgram", functions->destroy);
  resolve(from, "nvrtcCompileProgram", functions->compile);
  resolve(from, "nvrtcGetProgramLogSize", functions->log_size);
  resolve(from, "nvrtcGetProgramLog", functions->log);
  resolve(from, "nvrtcGetPTXSize", functions->ptx_size);
  resolve(from, "nvrtcGetPTX", functions->ptx);
  resolve(from, "nvrtcGetCUBINSize", functions->cubin_size);
  resolve(from, "nvrtcGetCUBIN", functions->cubin);
  functions->version(&functions->major, &functions->minor);
  load_builtins(path, functions->major, functions->minor);
  return functions;
}

// Headers as the two parallel arrays that nvrtcCreateProgram takes: the author's, then ours.
struct HeaderArrays {
  explicit HeaderArrays(const Source& source) {
    for (const AuthorsHeader& header : source.headers) add(header.name.c_str(), header.text.c_str());
    for (const Header& header : device_headers()) add(header.name.data(), header.text.data());
  }
  void add(const char* name, const char* text) {
    names.push_back(name);
    texts.push_back(text);
  }

  std::vector<const char*> names;
  std::vector<const char*> texts;
};

// One program from creation to destruction. Calls other than compile() fail only on our misuse or on lack of memory.
class NvrtcProgram {
 public:
  NvrtcProgram(const NvrtcFunctions& functions, const Source& source) : functions_(functions) {
    const HeaderArrays headers(source);
    check("nvrtcCreateProgram",
          functions.create(&program_, source.text.c_str(), (source.name + ".cu").c_str(),
                           static_cast<int>(headers.names.size()), headers.texts.data(), headers.names.data()));
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;
  ~NvrtcProgram() { functions_.destroy(&program_); }

  int compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return functions_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  // Log and PTX are reported with a terminating NUL, which is dropped.
  std::string log() const { return text("nvrtcGetProgramLog", functions_.log_size, functions_.log); }
  std::string ptx() const { return text("nvrtcGetPTX", functions_.ptx_size, functions_.ptx); }
  std::string cubin() const { return bytes("nvrtcGetCUBIN", functions_.cubin_size, functions_.cubin); }

 private:
  void check(const char* call, int result) const {
    if (result != 0) throw CompileError(fmt::format("{}: {} ({})", call, functions_.error_string(result), result));
  }
  std::string bytes(const char* call, NvrtcFunctions::GetSize get_size, NvrtcFunctions::GetText get) const {
    std::size_t size = 0;
    check(call, get_size(program_, &size));
    std::string result(size, '\0');
    check(call, get(program_, result.data()));
    return result;
  }
  std::string text(const char* call, NvrtcFunctions::GetSize get_size, NvrtcFunctions::GetText get) const {
    std::string result = bytes(call, get_size, get);
    while (!result.empty() && result.back() == '\0') result.pop_back();
    return result;
  }

  const NvrtcFunctions& functions_;
  NvrtcFunctions::Program program_ = nullptr;
};

// A virtual architecture stops after PTX, which saves the time of ptxas when only the emulator will run it.
std::vector<std::string> compile_options(const Source& source, const NvrtcFunctions& functions, bool nvrtc_cache) {
  const bool has_cache = functions.major > 12 || (functions.major == 12 && functions.minor >= 9);
  std::vector<std::string> options = {
      "--gpu-architecture=" + (source.outputs.cubin ? source.target.name() : source.target.virtual_name()),
      std::string(kLanguage)};
  if (source.outputs.cubin) options.emplace_back("--ptxas-options=-v");
  if (source.line_info) options.emplace_back("-lineinfo");
  if (source.max_registers > 0) options.push_back(fmt::format("--maxrregcount={}", source.max_registers));
  if (has_cache && !nvrtc_cache) options.emplace_back("--no-cache");
  if (functions.major >= 13) options.emplace_back(kMinimal);
  return options;
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(const ToolchainOptions& options, const Environment& environment)
    : options_(options), temporary_dir_(environment.temporary_dir) {
  const Search search = find_nvrtc(environment);
  if (!search.path) throw_not_found("NVRTC (libnvrtc.so.13 or .12)", search, kInstallNvrtc);
  path_ = *search.path;
  identity_ = fmt::format("nvrtc {} {} {}", build_identity(path_), kLanguage, kMinimal);
}

NvrtcCompiler::~NvrtcCompiler() = default;

const NvrtcFunctions& NvrtcCompiler::functions() const {
  std::call_once(loaded_, [this] { functions_ = load_nvrtc(path_); });
  return *functions_;
}

Artifact NvrtcCompiler::compile(const Source& source) const {
  validate(source).or_throw();
  const NvrtcFunctions& nvrtc = functions();
  const auto started = std::chrono::steady_clock::now();
  NvrtcProgram program(nvrtc, source);
  const int result = program.compile(compile_options(source, nvrtc, options_.nvrtc_cache));
  Compiled compiled{.cubin = {}, .ptx = {}, .log = program.log()};
  if (result != 0) {
    throw_compile_error(source, fmt::format("nvrtcCompileProgram: {} ({})", nvrtc.error_string(result), result),
                        dump_source(source, options_.dump_dir, temporary_dir_), compiled.log);
  }
  compiled.ptx = program.ptx();
  if (source.outputs.cubin) compiled.cubin = program.cubin();
  return make_artifact(source, "nvrtc", std::move(compiled), started);
}

}  // namespace tilewright::compile
