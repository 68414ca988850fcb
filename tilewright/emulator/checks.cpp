// Names and texts of findings.
#include "tilewright/emulator/checks.hpp"

#include <array>

namespace tilewright::emulator {
namespace {

constexpr std::array<std::string_view, 23> kNames = {
    "malformed PTX",
    "unknown instruction",
    "out-of-bounds global access",
    "out-of-bounds shared access",
    "out-of-bounds local access",
    "out-of-bounds parameter access",
    "misaligned access",
    "uninitialised shared read",
    "shared race",
    "global race",
    "access to a copy in flight",
    "write under a read in flight",
    "missing proxy fence",
    "wgmma register in flight",
    "missing wgmma.fence",
    "mbarrier misuse",
    "transaction count mismatch",
    "bad descriptor",
    "access to an exited CTA",
    "barrier divergence",
    "deadlock",
    "no progress",
    "trap",
};
static_assert(kNames.size() == static_cast<std::size_t>(FindingKind::trap) + 1);

}  // namespace

std::string_view name(FindingKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string to_string(const runtime::Dim3& index) { return fmt::format("({},{},{})", index.x, index.y, index.z); }

std::string to_string(const CodePlace& place) {
  std::string text;
  for (const SourceLine& line : place.source) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", inlined at ", line.file, line.line);
  }
  if (place.ptx_line == 0) return text.empty() ? "an unknown place" : text;
  const std::string ptx = place.ptx_text.empty() ? fmt::format("PTX line {}", place.ptx_line)
                                                 : fmt::format("PTX line {}: {}", place.ptx_line, place.ptx_text);
  return text.empty() ? ptx : fmt::format("{} ({})", text, ptx);
}

std::string to_string(const Finding& finding) {
  std::string text = fmt::format("{}: {}", name(finding.kind), finding.detail);
  if (finding.thread) {
    const std::string_view who = finding.kind == FindingKind::deadlock      ? "; first to wait:"
                                 : finding.kind == FindingKind::no_progress ? "; still running:"
                                                                            : " by";
    text +=
        fmt::format("{} thread {} of CTA {}", who, to_string(finding.thread->thread), to_string(finding.thread->cta));
  }
  if (finding.place.ptx_line != 0) text += fmt::format(" at {}", to_string(finding.place));
  for (const std::string& note : finding.notes) text += "\n  " + note;
  return text;
}

}  // namespace tilewright::emulator
