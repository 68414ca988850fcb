// Findings: what the emulator found wrong with a kernel, by which thread, at which line, and how to fix it.
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
  malformed_ptx,            // at load
  unsupported_instruction,  // executed: also an unsupported modifier, type, special register or external function
  out_of_bounds_global,
  out_of_bounds_shared,
  out_of_bounds_local,
  out_of_bounds_param,
  invalid_free,  // free() of an address that malloc() did not return, or that was freed before
  misaligned_access,
  uninitialised_shared_read,
  uninitialised_global_read,  // of an array that no one has written, if the launch says so
  uninitialised_local_read,   // of a local array or variable
  shared_race,                // two threads access a byte, at least one writes it, and no barrier orders them
  global_race,                // the same in global memory, between threads of a cooperative launch
  stream_race,                // the same between launches and copies of two streams
  non_coherent_read,          // ld.global.nc, as of __ldg(), of bytes that the launch has written
  async_write_in_flight,      // access to bytes that a cp.async or a bulk copy may still be writing
  async_read_in_flight,  // write to bytes that a wgmma, a bulk store or, of a tensor map, any copy may still be reading
  missing_proxy_fence,   // the async proxy accesses what the generic proxy has accessed, one of them writes, and no
                        // fence.proxy.async is in between; a warning if the generic access was a read or is overwritten
  missing_tensor_map_fence,  // TMA reads a tensor map that a kernel wrote, with no acquiring fence of the thread
  wgmma_register_in_flight,  // access to a register of a wgmma before the wgmma.wait_group that retires it
  missing_wgmma_fence,       // a wgmma uses registers that were written after the last wgmma.fence
  mbarrier_misuse,           // use before init, init of a live mbarrier, more arrivals than the phase has pending
  transaction_mismatch,      // the expect-tx bytes of an mbarrier's phase differ from the bytes that arrived
  bad_descriptor,            // a tensor map or a multicast mask that does not fit the copy
  exited_cta_access,         // to the shared memory of a CTA that has exited, or that exits with copies in flight
  unstarted_cta_access,      // to the shared memory of a CTA of the cluster that may not have started
  bad_warp_mask,       // a warp mask without the thread itself, or a shuffle from a thread that does not take part
  barrier_divergence,  // threads that must execute an instruction together do not
  deadlock,
  no_progress,  // the CTA exceeded its budget of warp instructions
  trap,         // trap, or a failed assert()
};

/// A warning is of code that the rules of CUDA allow, or leave open, but that is seldom intended.
enum class Severity : std::uint8_t { error, warning };

/// "error" or "warning"
std::string_view name(Severity severity);
/// "out-of-bounds global access", ...
std::string_view name(FindingKind kind);
/// "out_of_bounds_global", ...: the enumerator's name, for JSON and suppression files.
std::string_view identifier(FindingKind kind);
std::optional<FindingKind> parse_finding_kind(std::string_view identifier);
/// The usual change to the kernel that removes such a finding; empty when the detail says it.
std::string_view fix(FindingKind kind);

struct SourceLine {
  std::string file;
  int line = 0;
  bool operator==(const SourceLine&) const = default;
};

/// The location of an instruction: in the PTX, and in the CUDA source when the PTX carries line info.
struct CodeLocation {
  int ptx_line = 0;  // 1-based; 0 when unknown
  std::string ptx_text;
  std::vector<SourceLine> source;  // innermost first, then the lines it was inlined at
  bool operator==(const CodeLocation&) const = default;
};

struct ThreadLocation {
  runtime::Dim3 cta;
  runtime::Dim3 thread;
  bool operator==(const ThreadLocation&) const = default;
};

struct Finding {
  FindingKind kind = FindingKind::malformed_ptx;
  std::string detail;  // what happened: "read of 4 bytes at global address 0x... (12 bytes past the end of ...)"
  std::optional<ThreadLocation> thread;  // none for findings at load
  CodeLocation location;
  std::uint64_t address = 0;       // 0 when no address is involved
  std::vector<std::string> notes;  // what each group of threads waits for in a deadlock; a finding deferred before
  Severity severity = Severity::error;
  std::uint64_t count = 1;  // times that a launch which continues has found it
  bool is_fatal = false;    // the CTA, cluster or launch ended there; a note says which
  bool operator==(const Finding&) const = default;
};

/// One line: "misaligned access by thread (1,0,0) of CTA (0,0,0) at kernel.cu:17 (...): read of ..."
std::string summary(const Finding& finding);
/// The summary, then a line for each note and one for the fix.
std::string to_string(const Finding& finding);
/// "kernel.cu:17 (PTX line 210: ld.global.f32 %f1, [%rd4])"
std::string to_string(const CodeLocation& location);
/// "(3,0,0)"
std::string to_string(const runtime::Dim3& index);

/// Thrown by load() and launch() of an emulated kernel.
class EmulationFinding : public EmulationError {
 public:
  explicit EmulationFinding(Finding finding) : EmulationError(to_string(finding)), finding_(std::move(finding)) {}
  const Finding& finding() const { return finding_; }

 private:
  Finding finding_;
};

}  // namespace tilewright::emulator
