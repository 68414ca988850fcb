// Typical faults of TMA and wgmma pipelines, as replacements in sm90_gemm's device code.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "tests/conformance/guarded_operands.hpp"
#include "tests/conformance/planted_kernel.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/emulator/checks.hpp"

namespace tilewright::conformance {

/// A small kernel, and a problem on which all parts of its pipeline are used.
struct Base {
  DesignCase design;
  std::array<std::int64_t, 3> problem;  // m, n, k
  Placement placement{};
  plan::TypeCase types{DType::bf16, DType::bf16, DType::bf16, DType::f32};
  plan::Layouts layouts{};
  double beta = 0;
  std::string_view epilogue = {};  // empty: linear_combination
};

struct Fault {
  const char* name;
  const Base& base;
  std::vector<Substitution> planted;
  emulator::FindingKind kind;
  const char* line;  // line of device code of the finding or of a call that it was inlined at; empty: not checked
  std::vector<const char*> says;  // texts that the finding and its notes contain; {full}, {empty}: mbarriers of stage 0
};
inline void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::span<const Fault> pipeline_faults();

}  // namespace tilewright::conformance
