// Opens libcuda, looks up its functions, converts its result codes to exceptions.
#include "tilewright/runtime/driver.hpp"

#include <dlfcn.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tilewright::runtime {
namespace {

/// cuLibraryLoadData and cuGetProcAddress_v2 exist since CUDA 12.0, driver 525.60.13.
constexpr int kMinimumVersion = 12000;
constexpr const char* kInstallHint =
    "install NVIDIA's driver (Debian: apt-get install nvidia-driver), or run on the emulator (emulator:sm_80, "
    "emulator:sm_90a)";

using GetProcedure = DriverCode (*)(const char* symbol, void** function, int version, std::uint64_t flags, int* status);
constexpr std::uint64_t kLegacyDefaultStream = 1;

/// The version that a driver without cuGetProcAddress_v2 reports.
std::string version_of_old_driver(void* library) {
  using GetVersion = DriverCode (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != kSuccess) return "an unknown CUDA version";
  return "CUDA " + cuda_version_text(version);
}

ToolchainNotFound driver_too_old(const std::string& supports) {
  return ToolchainNotFound(fmt::format("the NVIDIA driver supports {}, need {} or newer (driver 525 or newer): {}",
                                       supports, cuda_version_text(kMinimumVersion), kInstallHint));
}

}  // namespace

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

bool is_fatal(DriverCode code) {
  static constexpr std::array kFatal = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810};
  return std::ranges::binary_search(kFatal, code);
}

Driver::Library::Library(const DriverOptions& options)
    : handle(dlopen(options.library_path.c_str(), RTLD_NOW | RTLD_LOCAL)), get_procedure(nullptr) {
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw ToolchainNotFound(fmt::format("no CUDA driver: cannot open {} ({}); {}", options.library_path,
                                        reason != nullptr ? reason : "no reason given", kInstallHint));
  }
  get_procedure = dlsym(handle, "cuGetProcAddress_v2");
  if (get_procedure == nullptr) throw driver_too_old(version_of_old_driver(handle));
}

Driver::Driver(const DriverOptions& options) : library_(options) {}

void* Driver::find(const char* symbol, int version, Presence presence) const {
  void* function = nullptr;
  int status = 0;
  const auto get_procedure = reinterpret_cast<GetProcedure>(library_.get_procedure);
  const DriverCode code = get_procedure(symbol, &function, version, kLegacyDefaultStream, &status);
  if (code == kStubLibrary) {
    throw ToolchainNotFound(
        fmt::format("libcuda.so.1 is the stub library of the CUDA toolkit, not a driver: remove its folder from the "
                    "library path; {}",
                    kInstallHint));
  }
  if (code != kSuccess || function == nullptr) {
    if (presence == Presence::optional) return nullptr;
    throw DriverError(code, fmt::format("cuGetProcAddress({}) for CUDA {} returned {}, status {}", symbol,
                                        cuda_version_text(version), code, status));
  }
  return function;
}

// Not std::call_once: with a statically linked libgcc, exceptions cannot pass through the C library's pthread_once.
void Driver::initialize() {
  const std::scoped_lock lock(initialize_mutex_);
  require_usable();
  if (initialized_) return;
  const DriverCode code = init.raw(0);
  if (code == kNoDevice || code == kStubLibrary) {
    throw ToolchainNotFound(fmt::format("no GPU: cuInit returned {}; {}", describe(code), kInstallHint));
  }
  if (code == kNotInitialized) {
    throw DriverError(code,
                      "cuInit failed: the parent process used CUDA before this one was forked from it, and CUDA does "
                      "not survive a fork; start the child with exec (Python: the spawn method)");
  }
  check(code, init.symbol());
  int version = 0;
  check(driver_get_version.raw(&version), driver_get_version.symbol());
  if (version < kMinimumVersion) throw driver_too_old("CUDA " + cuda_version_text(version));
  owner_ = getpid();
  owner_generation_ = fork_generation();
  initialized_ = true;
}

std::string Driver::describe(DriverCode code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name.raw(code, &name) != kSuccess || name == nullptr) name = "unknown CUDA error";
  if (get_error_string.raw(code, &text) != kSuccess || text == nullptr) text = "no description";
  return fmt::format("{} ({}): {}", name, code, text);
}

void Driver::poison(DriverCode code, const char* call) {
  const std::scoped_lock lock(poison_mutex_);
  if (first_poison_ != nullptr) return;
  first_poison_ = std::make_unique<const Poison>(Poison{
      code,
      fmt::format(
          "{} reported {}; this call, or work enqueued before it, corrupted the CUDA context: restart the process",
          call, describe(code))});
  poison_.store(first_poison_.get(), std::memory_order_release);
}

void Driver::fail(DriverCode code, const char* call) {
  if (is_fatal(code)) {
    poison(code, call);
    throw_poisoned();
  }
  const std::string message = fmt::format("{} failed: {}", call, describe(code));
  if (code == kOutOfMemory) throw OutOfMemory(message);
  throw DriverError(code, message);
}

void Driver::note(DriverCode code, const char* call) noexcept {
  if (code == kSuccess || code == kDeinitialized) return;
  try {
    if (is_fatal(code)) {
      poison(code, call);
    } else {
      spdlog::warn("{} failed while releasing a resource: {}", call, describe(code));
    }
  } catch (...) {
    // There is no memory for the message.
  }
}

void Driver::throw_poisoned() const {
  const Poison* poison = poison_.load(std::memory_order_acquire);
  throw DriverError(poison->code, poison->message);
}

void Driver::throw_forked() const {
  throw DriverError(kNotInitialized,
                    fmt::format("CUDA was initialised by process {} and this is its fork {}: CUDA does not survive a "
                                "fork; start the child with exec (Python: the spawn method)",
                                owner_.load(), getpid()));
}

}  // namespace tilewright::runtime
