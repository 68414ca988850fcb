// One compile as NVRTC sees it. It runs in a process of its own (nvrtc_process/main.cpp) or, where none can be started,
// in this one; the file is compiled into both, so it uses the standard library alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::compile {

/// What NVRTC is asked to compile.
struct NvrtcJob {
  std::string library;    // absolute path of libnvrtc.so
  std::string file_name;  // of the source, in messages and in line information: "gemm.cu"
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers;  // name and text; the first of a name counts
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

/// "-std=c++20 --minimal": the options that every compile has.
inline constexpr std::string_view kNvrtcLanguage = "-std=c++20";
/// Leaves out textures and the device runtime, which no kernel of this field uses, and some 10 ms a compile. NVRTC 13.
inline constexpr std::string_view kNvrtcMinimal = "--minimal";

/// Compiles in this process; loads the library at the first call. Thread-safe. Never throws for what NVRTC refuses.
NvrtcOutcome run(const NvrtcJob& job);

/// The bytes that travel between the two processes: fixed-width little-endian lengths, each followed by its bytes.
std::string encode(const NvrtcJob& job);
std::string encode(const NvrtcOutcome& outcome);
/// Nothing where the bytes are no such message.
std::optional<NvrtcJob> decode_job(std::string_view bytes);
std::optional<NvrtcOutcome> decode_outcome(std::string_view bytes);

}  // namespace tilewright::compile
