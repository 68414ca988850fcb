// GEMM kernels as programs, by one of four mixes of atoms.
#pragma once

#include <string>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/program_gemm.hpp"
#include "tilewright/program/program.hpp"

namespace tilewright::program {

/// The kernel of a plan. It is persistent and warp-specialised: one warpgroup copies, the others multiply and run the
/// epilogue.
Program gemm(std::string symbol, const plan::ProgramGemmPlan& plan);

/// The launch of that program. `arguments` are the caller's problem, not the transposed one.
/// @pre check_arguments(plan, arguments)
plan::Launch launch(const Program& program, const plan::ProgramGemmPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::program
