// cvt to and from e4m3x2 and e5m2x2.
#pragma once

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

inline bool is_fp8_pair(PtxType type) { return type == PtxType::e4m3x2 || type == PtxType::e5m2x2; }

/// Decodes a cvt whose types and modifiers were taken. .satfinite needs no flag, as all conversions to FP8 have it.
void decode_fp8_conversion(InstructionReader& reader, PtxType to, PtxType from, bool relu);

}  // namespace tilewright::emulator
