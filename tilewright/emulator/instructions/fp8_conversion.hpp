// cvt to and from pairs of 8-bit floats.
#pragma once

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

inline bool is_fp8_pair(PtxType type) { return type == PtxType::e4m3x2 || type == PtxType::e5m2x2; }

/// The types and modifiers of a cvt were taken; .satfinite is what every conversion to 8 bits does.
void decode_fp8_conversion(InstructionReader& reader, PtxType to, PtxType from, bool relu);

}  // namespace tilewright::emulator
