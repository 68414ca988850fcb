// Names, fixes and texts of findings.
#include "tilewright/emulator/checks.hpp"

#include <array>

namespace tilewright::emulator {
namespace {

struct KindRow {
  FindingKind kind;
  std::string_view identifier;
  std::string_view name;
  std::string_view fix;
};

constexpr std::array kKinds = {
    KindRow{FindingKind::malformed_ptx, "malformed_ptx", "malformed PTX", ""},
    KindRow{FindingKind::unsupported_instruction, "unsupported_instruction", "unsupported instruction", ""},
    KindRow{FindingKind::out_of_bounds_global, "out_of_bounds_global", "out-of-bounds global access",
            "check the index and the extents, strides and pointers that the launch passed"},
    KindRow{FindingKind::out_of_bounds_shared, "out_of_bounds_shared", "out-of-bounds shared access",
            "check the index, and the dynamic shared memory that the launch asked for"},
    KindRow{FindingKind::out_of_bounds_local, "out_of_bounds_local", "out-of-bounds local access",
            "check the index into the thread's local array"},
    KindRow{FindingKind::out_of_bounds_param, "out_of_bounds_param", "out-of-bounds parameter access",
            "check the offset against the kernel's parameter list"},
    KindRow{FindingKind::invalid_free, "invalid_free", "invalid free()",
            "free each block once, by the address that malloc() returned"},
    KindRow{FindingKind::misaligned_access, "misaligned_access", "misaligned access",
            "align the base address and the strides, or use a narrower access"},
    KindRow{FindingKind::uninitialised_shared_read, "uninitialised_shared_read", "uninitialised shared read",
            "write defined values to these bytes, then execute a barrier, before they are read"},
    KindRow{FindingKind::uninitialised_global_read, "uninitialised_global_read", "uninitialised global read",
            "fill the array before the launch, or write the elements before they are read"},
    KindRow{FindingKind::uninitialised_local_read, "uninitialised_local_read", "uninitialised local read",
            "initialise the variable, or the elements of the array, before they are read"},
    KindRow{
        FindingKind::shared_race, "shared_race", "shared race",
        "put a barrier between the two accesses: __syncthreads(), a named barrier, an mbarrier wait, or __syncwarp() "
        "within a warp"},
    KindRow{FindingKind::global_race, "global_race", "global race",
            "make both accesses atomic, or order them by a barrier, or by a release and an acquire that every thread "
            "involved synchronises with"},
    KindRow{FindingKind::stream_race, "stream_race", "race between streams or with the host",
            "order them: the same stream, cudaStreamWaitEvent(), or a synchronisation of the host in between"},
    KindRow{FindingKind::non_coherent_read, "non_coherent_read", "read through the non-coherent cache",
            "load such memory without __ldg() and without const __restrict__, so that the load is no ld.global.nc"},
    KindRow{FindingKind::async_write_in_flight, "async_write_in_flight", "access during an asynchronous write",
            "wait for the copy first: cp.async.wait_group and a barrier, or a wait for the mbarrier's phase"},
    KindRow{FindingKind::async_read_in_flight, "async_read_in_flight", "write during an asynchronous read",
            "wait for the read first: wgmma.wait_group or cp.async.bulk.wait_group.read, then a barrier or mbarrier"},
    KindRow{
        FindingKind::missing_proxy_fence, "missing_proxy_fence", "missing proxy fence",
        "the threads of the earlier access must execute fence.proxy.async after it, before the barrier or arrival that "
        "orders it before this one"},
    KindRow{FindingKind::missing_tensor_map_fence, "missing_tensor_map_fence", "missing tensor-map fence",
            "the thread that issues the copy, or one of its CTA that it synchronises with afterwards, must execute "
            "fence.proxy.tensormap::generic.acquire.gpu on the tensor map "
            "after it was written"},
    KindRow{FindingKind::wgmma_register_in_flight, "wgmma_register_in_flight", "wgmma register in flight",
            "execute wgmma.wait_group before the register is accessed"},
    KindRow{FindingKind::missing_wgmma_fence, "missing_wgmma_fence", "missing wgmma.fence",
            "execute wgmma.fence after the registers are written and before the first wgmma.mma_async that uses them"},
    KindRow{FindingKind::mbarrier_misuse, "mbarrier_misuse", "mbarrier misuse", ""},
    KindRow{FindingKind::transaction_mismatch, "transaction_mismatch", "transaction count mismatch",
            "make the expect-tx bytes of the phase equal to the bytes of all copies that complete on it"},
    KindRow{FindingKind::bad_descriptor, "bad_descriptor", "bad descriptor", ""},
    KindRow{FindingKind::exited_cta_access, "exited_cta_access", "access to an exited CTA",
            "let the CTA wait for its copies and for its peers, e.g. at a cluster barrier, before it exits"},
    KindRow{FindingKind::unstarted_cta_access, "unstarted_cta_access", "access to a CTA that may not have started",
            "let all threads of the cluster wait for each other first: barrier.cluster, or cluster.sync()"},
    KindRow{FindingKind::bad_warp_mask, "bad_warp_mask", "warp mask misuse",
            "name exactly the threads that execute the instruction together, e.g. by a ballot before the branch"},
    KindRow{FindingKind::barrier_divergence, "barrier_divergence", "barrier divergence", ""},
    KindRow{FindingKind::deadlock, "deadlock", "deadlock",
            "compare what the threads above wait for with the arrivals, bytes and phase parities of the other threads"},
    KindRow{FindingKind::no_progress, "no_progress", "no progress", ""},
    KindRow{FindingKind::trap, "trap", "trap", ""},
};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].kind != static_cast<FindingKind>(i)) return false;
  }
  return kKinds.size() == static_cast<std::size_t>(FindingKind::trap) + 1;
}
static_assert(in_enum_order());

const KindRow& row(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view name(Severity severity) { return severity == Severity::error ? "error" : "warning"; }
std::string_view name(FindingKind kind) { return row(kind).name; }
std::string_view identifier(FindingKind kind) { return row(kind).identifier; }

std::optional<FindingKind> parse_finding_kind(std::string_view identifier) {
  for (const KindRow& each : kKinds) {
    if (each.identifier == identifier) return each.kind;
  }
  return std::nullopt;
}

std::string_view fix(FindingKind kind) { return row(kind).fix; }

std::string to_string(const runtime::Dim3& index) { return fmt::format("({},{},{})", index.x, index.y, index.z); }

std::string to_string(const CodeLocation& location) {
  std::string text;
  for (const SourceLine& line : location.source) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", inlined at ", line.file, line.line);
  }
  if (location.ptx_line == 0) return text.empty() ? "an unknown location" : text;
  if (!text.empty()) {
    return location.ptx_text.empty() ? fmt::format("{} (PTX line {})", text, location.ptx_line)
                                     : fmt::format("{} (PTX line {}: {})", text, location.ptx_line, location.ptx_text);
  }
  return location.ptx_text.empty() ? fmt::format("PTX line {}", location.ptx_line)
                                   : fmt::format("PTX line {} ({})", location.ptx_line, location.ptx_text);
}

std::string summary(const Finding& finding) {
  std::string text(name(finding.kind));
  if (finding.thread) {
    std::string_view role = " by";
    if (finding.kind == FindingKind::deadlock || finding.kind == FindingKind::transaction_mismatch) {
      role = ", first waiting";
    } else if (finding.kind == FindingKind::no_progress) {
      role = ", running";
    }
    text +=
        fmt::format("{} thread {} of CTA {}", role, to_string(finding.thread->thread), to_string(finding.thread->cta));
  }
  if (finding.location.ptx_line != 0) text += fmt::format(" at {}", to_string(finding.location));
  return text + ": " + finding.detail;
}

std::string to_string(const Finding& finding) {
  std::string text = summary(finding);
  for (const std::string& note : finding.notes) text += "\n  " + note;
  if (!fix(finding.kind).empty()) text += fmt::format("\n  fix: {}", fix(finding.kind));
  return text;
}

}  // namespace tilewright::emulator
