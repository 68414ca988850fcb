// Contractions by loops over their modes, those of the TCCG list, and random ones, to compare kernels and the view
// with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/contraction.hpp"

namespace tilewright::op {

/// The sums of products of every element of D, as if it were packed. A and B are on the host.
std::vector<double> direct_sums(const Contraction& contraction);

/// The 48 contractions of the Tensor Contraction Code Generator benchmark (github.com/springer13/tccg), written D-A-B
/// as there: the first mode of each tensor has stride 1.
const std::vector<std::string_view>& tccg_contractions();

/// A contraction of the list, without memory, whose modes have extents from 2 to 8 that depend on their letters only.
Contraction tccg_contraction(std::string_view text, DType type);

/// A small contraction without memory: up to 6 modes an operand in random order, with gaps and broadcast inputs.
/// C equals D.
Contraction random_contraction(std::uint64_t seed, DType type);

/// "ab,bc->ac A(2,3):(3,1) B(3,4):(4,1) D(2,4):(4,1)"
std::string to_string(const Contraction& contraction);

}  // namespace tilewright::op
