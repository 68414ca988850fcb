// Faults that pipelines of TMA and wgmma are prone to, as texts to change in sm90_gemm's device code.
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

/// A small kernel, and a problem on which it does all that it can do.
struct Base {
  DesignCase design;
  std::array<std::int64_t, 3> problem;  // m, n, k
  Placement placement{};
  plan::TypeCase types{DType::bf16, DType::bf16, DType::bf16, DType::f32};
  plan::Layouts layouts{};
  double beta = 0;
  std::string_view epilogue = {};  // its text; empty: linear_combination
};

struct Fault {
  const char* name;
  const Base& base;
  std::vector<Substitution> planted;
  emulator::FindingKind kind;
  const char* line;               // of device code, that the finding is at or is inlined at; empty: nowhere
  std::vector<const char*> says;  // finding and notes; {full} and {empty}: the barriers of stage 0
};
inline void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::span<const Fault> pipeline_faults();

}  // namespace tilewright::conformance
