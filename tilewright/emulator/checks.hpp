// What the emulator finds wrong with a kernel: the rule that was broken, by which thread, at which line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

enum class FindingKind : std::uint8_t {
  malformed_ptx,        // at load
  unknown_instruction,  // at load: also an unknown modifier, type, special register or external function
  out_of_bounds_global,
  out_of_bounds_shared,
  out_of_bounds_local,
  out_of_bounds_param,
  misaligned_access,
  uninitialised_shared_read,
  shared_race,          // two threads, one byte, at least one write, no barrier between
  global_race,          // the same in global memory, of threads of a cooperative launch
  in_flight_read,       // of bytes that a cp.async or a bulk copy may still be writing
  in_flight_write,      // of bytes that a wgmma or a bulk store may still be reading
  unfenced_async_read,  // wgmma or a bulk copy reads what the generic proxy wrote, and no fence.proxy.async is between
  accumulator_in_flight,  // a register of a wgmma is touched before the wait that retires it
  unfenced_wgmma,         // registers of a wgmma were written, and no wgmma.fence followed
  mbarrier_misuse,        // an mbarrier used before its init, initialised while in use, given too many arrivals
  transaction_mismatch,   // an mbarrier's phase cannot complete: other bytes were expected than arrived
  bad_descriptor,         // of a shared matrix, or a tensor map that is none
  exited_cta_access,      // shared memory of a CTA that has exited, or exits with asynchronous work in it
  barrier_divergence,     // threads of a warp that must execute one instruction together do not
  deadlock,
  no_progress,  // the CTA exceeded its limit of steps
  trap,         // trap, or a failed assert()
};

/// "out-of-bounds global access", ...
std::string_view name(FindingKind kind);

struct SourceLine {
  std::string file;
  int line = 0;
  bool operator==(const SourceLine&) const = default;
};

/// Where in the program: the PTX, and the CUDA source when the PTX carries line info.
struct CodePlace {
  int ptx_line = 0;  // 1-based; 0 when unknown
  std::string ptx_text;
  std::vector<SourceLine> source;  // innermost first, then the places it was inlined at
  bool operator==(const CodePlace&) const = default;
};

struct ThreadPlace {
  runtime::Dim3 cta;
  runtime::Dim3 thread;
  bool operator==(const ThreadPlace&) const = default;
};

struct Finding {
  FindingKind kind = FindingKind::malformed_ptx;
  std::string detail;                 // what happened: "read of 4 bytes at 0x..., 12 bytes past the end of ..."
  std::optional<ThreadPlace> thread;  // none for what is found at load
  CodePlace place;
  std::uint64_t address = 0;       // 0 when no address is involved
  std::vector<std::string> notes;  // of a deadlock: who waits for what; what was suspected before
  bool operator==(const Finding&) const = default;
};

/// One readable line, and one for each note.
std::string to_string(const Finding& finding);
/// "kernel.cu:17 (PTX line 210: ld.global.f32 %f1, [%rd4])"
std::string to_string(const CodePlace& place);
/// "(3,0,0)"
std::string to_string(const runtime::Dim3& index);

/// What load() and launch() of an emulated kernel throw.
class EmulationFinding : public EmulationError {
 public:
  explicit EmulationFinding(Finding finding) : EmulationError(to_string(finding)), finding_(std::move(finding)) {}
  const Finding& finding() const { return finding_; }

 private:
  Finding finding_;
};

}  // namespace tilewright::emulator
