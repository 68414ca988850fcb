// One compile by NVRTC. It runs in a separate process (nvrtc_process/main.cpp) or, when none can be started, in the
// library's process. This file is compiled into both, so it depends on nothing but the standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::compile {

/// The input of a compile.
struct NvrtcJob {
  std::string library;    // absolute path of libnvrtc.so
  std::string file_name;  // the source's name in messages and line information: "gemm.cu"
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers;  // name and text; the first header of a name is used
  std::vector<std::string> include_folders;                  // searched for headers that are not among `headers`
  std::string architecture;                                  // "sm_90a", or "compute_90a" for PTX alone
  bool wants_cubin = true;
  bool line_info = true;
  bool nvrtc_cache = false;  // whether NVRTC may use its own cache in ~/.nv
  int max_registers = 0;     // 0: the compiler decides
};

struct NvrtcOutcome {
  enum class Status : unsigned char {
    compiled,
    failed,      // NVRTC rejected the source; `error` names its result, `log` says why
    not_loaded,  // the library cannot be loaded, or lacks a function
  };
  Status status = Status::not_loaded;
  std::string error;
  std::string log;
  std::string ptx;
  std::string cubin;
};

/// An option of NVRTC 13 and later that saves about 10 ms per compile: it omits the declarations of textures and of the
/// device runtime, which GEMM kernels do not use. It is left out if the job has include folders: headers such as those
/// of CUB name types of the device runtime.
inline constexpr std::string_view kNvrtcMinimal = "--minimal";

/// Compiles in this process; the first call loads the library. Thread-safe. Errors of NVRTC are returned, not thrown.
NvrtcOutcome run(const NvrtcJob& job);

/// The messages between the two processes (job_message.hpp).
std::string encode(const NvrtcJob& job);
std::string encode(const NvrtcOutcome& outcome);
/// The inverse of encode(); empty when the bytes are not such a message.
std::optional<NvrtcJob> decode_job(std::string_view bytes);
std::optional<NvrtcOutcome> decode_outcome(std::string_view bytes);

}  // namespace tilewright::compile
