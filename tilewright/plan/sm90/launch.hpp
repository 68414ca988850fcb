// What a plan of sm90_gemm makes of one problem's extents: the launch, whether it can be, and what the cost model asks.
#pragma once

#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/sm90/cost.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::plan {

/// The plan as the cost model sees it, on extents of the caller's problem.
Sm90CostInput cost_input(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// Refuses arguments that kernels of the plan cannot take: no k to sum over, extents beyond 32-bit indices, tensors
/// that the plan's TMA cannot reach, a workspace beyond 4 GiB.
Support check_arguments(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// Where launch() writes each parameter.
ParameterLayout parameter_layout(const Sm90GemmPlan& plan);

/// A persistent grid of clusters, with the parameters of device/tilewright/gemm/sm90_parameters.cuh.
/// @pre op::validate(arguments) and check_arguments accepted them
Launch launch(const Sm90GemmPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
