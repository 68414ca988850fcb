// Applies an sm90_gemm plan to the extents of one problem: the checks of its arguments (check_arguments.cpp), the
// launch (launch.cpp), and the input of the cost model (cost_input.cpp).
#pragma once

#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/sm90/cost.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::plan {

/// The input of the cost model for the plan. The extents of `arguments` are those of the caller's problem.
Sm90CostInput cost_input(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// Refuses arguments that kernels of the plan cannot take: k == 0, extents beyond 32-bit indices, strides that TMA
/// cannot address, or a workspace beyond 4 GiB.
Support check_arguments(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The offset at which launch() writes each parameter.
ParameterLayout parameter_layout(const Sm90GemmPlan& plan);

/// Builds the launch of a persistent grid of clusters. The parameters are those of
/// device/tilewright/gemm/sm90_parameters.cuh.
/// @pre op::validate(arguments) and check_arguments accepted them
Launch launch(const Sm90GemmPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
