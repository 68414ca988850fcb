// One translation of MLIR to PTX by the library tilewright_mlir (mlir_shim/abi.h). Like a compile by NVRTC, it runs in
// a separate process or, when none can be started, in this one; this file is compiled into both, so it depends on
// nothing but the standard library.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::compile {

/// The input of a translation.
struct MlirJob {
  std::string library;    // absolute path of libtilewright_mlir.so
  std::string file_name;  // the text's name in messages and line information: "gemm.mlir"
  std::string text;
  std::string architecture;  // "sm_90a"
  int ptx_version = 0;       // 86 for ".version 8.6"
  bool line_info = true;
};

struct MlirOutcome {
  enum class Status : unsigned char {
    compiled,
    failed,       // MLIR or LLVM refused the text; `log` says why
    not_loaded,   // the library cannot be loaded, or lacks a function
    unsupported,  // the library is of another version
  };
  Status status = Status::not_loaded;
  std::string error;  // for a person, unless the status is `compiled` or `failed`
  std::string log;    // one line per diagnostic: "file:line:column: error: text"
  std::string ptx;
  std::string llvm_version;  // "22.1.8", once the library is loaded
  /// Microseconds of parsing, passes, translation to LLVM IR, and code generation.
  std::array<std::uint64_t, 4> stages_us{};
};

/// Translates in this process; the first call loads the library. Thread-safe. Errors are returned, not thrown.
MlirOutcome run(const MlirJob& job);

/// The version of LLVM in the library, which is loaded into this process. On failure returns nothing and sets `error`.
std::optional<std::string> mlir_llvm_version(const std::string& library, std::string& error);

/// The messages between the two processes (job_message.hpp).
std::string encode(const MlirJob& job);
std::string encode(const MlirOutcome& outcome);
/// The inverse of encode(); empty when the bytes are not such a message.
std::optional<MlirJob> decode_mlir_job(std::string_view bytes);
std::optional<MlirOutcome> decode_mlir_outcome(std::string_view bytes);

}  // namespace tilewright::compile
