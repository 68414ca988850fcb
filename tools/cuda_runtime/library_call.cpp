#include "tools/cuda_runtime/library_call.hpp"

#include <fmt/format.h>

#include "tools/cuda_runtime/machine.hpp"

namespace tilewright::cuda_runtime {

using emulator::Finding;
using emulator::FindingKind;

bool LibraryMemory::is_allocated(const std::string& what, const StridedBytes& bytes, const char* verb) {
  for (std::size_t i = 0; i < bytes.lines; ++i) {
    const CUdeviceptr begin = bytes.begin + i * bytes.pitch;
    if (machine_.memory()->find(begin, bytes.line)) continue;
    Finding finding;
    finding.kind = FindingKind::out_of_bounds_global;
    finding.address = begin;
    finding.detail =
        fmt::format("{} {} {} bytes of {} at global address {:#x} (line {} of {}), which are not allocated", function_,
                    verb, bytes.line, what, begin, i, bytes.lines);
    machine_.report_finding(finding);
    return false;
  }
  return true;
}

bool LibraryMemory::reads(const std::string& what, const StridedBytes& bytes) {
  if (!is_allocated(what, bytes, "reads")) return false;
  bool is_reported = false;
  for (std::size_t i = 0; i < bytes.lines; ++i) {
    const CUdeviceptr begin = bytes.begin + i * bytes.pitch;
    footprint_.reads.add(begin, begin + bytes.line);
    const auto unwritten = machine_.unwritten_within(begin, begin + bytes.line);
    if (unwritten.empty() || is_reported) continue;
    is_reported = true;
    Finding finding;
    finding.kind = FindingKind::uninitialised_global_read;
    finding.address = unwritten.front().first;
    finding.detail = fmt::format("{} reads {} at global address {:#x} (line {} of {}), which no one has written",
                                 function_, what, finding.address, i, bytes.lines);
    machine_.report_finding(finding);
  }
  return true;
}

bool LibraryMemory::writes(const std::string& what, const StridedBytes& bytes) {
  if (!is_allocated(what, bytes, "writes")) return false;
  for (std::size_t i = 0; i < bytes.lines; ++i) {
    const CUdeviceptr begin = bytes.begin + i * bytes.pitch;
    footprint_.writes.add(begin, begin + bytes.line);
    machine_.mark_written(begin, bytes.line);
  }
  return true;
}

}  // namespace tilewright::cuda_runtime
