// Arguments of tilewright.arch, which tilewright.program has, too.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "python/bindings/read.hpp"
#include "tilewright/arch/wgmma_smem.hpp"

namespace tilewright::python {

/// Reads "k" or "mn". @throws InvalidArgument
arch::Major read_major(const Text& text);

/// The layout of an operand tile; without `swizzle`, with the widest. @throws InvalidArgument
layout::ComposedLayout make_smem_tile(const Text& major, nanobind::handle dtype, std::int64_t mn, std::int64_t k,
                                      std::optional<std::int64_t> swizzle, const std::optional<Text>& order);

}  // namespace tilewright::python
