// Includes the public interface of Tilewright, for programs that use the library (see examples/). The rooms do not
// include this header.
//
//   op::Gemm gemm;              a problem: operands on host or device, scalars, an epilogue
//   engine::Engine engine;      finds, compiles, caches and runs kernels
//   tune::tune(engine, gemm)    measures which kernel is the fastest
//   profile::profile(engine, problems)  verifies, times and counts kernels; profile::to_html() makes a report of it
//   registry::Kernel            a kernel; derive from it and from registry::Provider to add your own
//   layout::Layout              the layout algebra, which can be used on its own
//
// A function that can refuse returns a Result or Support with the reason (base/support.hpp). Other failures are thrown
// as an Error (base/error.hpp).
#pragma once

// Problems, epilogues, and the reference results.
#include "tilewright/base/dtype.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/op/epilogue.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/op/grouped_gemm.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/op/problem_text.hpp"
#include "tilewright/op/reduce_split_k.hpp"
#include "tilewright/op/split_k.hpp"
#include "tilewright/op/tensor.hpp"

// The engine: choosing, compiling, caching, running and tuning kernels.
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/source.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/engine/refused_design.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/profile/extents.hpp"
#include "tilewright/profile/formats.hpp"
#include "tilewright/profile/profile.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/registry/metadata.hpp"
#include "tilewright/registry/provider.hpp"
#include "tilewright/tune/timer.hpp"
#include "tilewright/tune/tune.hpp"

// Devices.
#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/device.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/stream.hpp"

// The layout algebra.
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/draw.hpp"
#include "tilewright/layout/expression.hpp"
#include "tilewright/layout/index_code.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/number.hpp"
#include "tilewright/layout/number_text.hpp"
#include "tilewright/layout/parse.hpp"
#include "tilewright/layout/print.hpp"
#include "tilewright/layout/swizzle.hpp"
