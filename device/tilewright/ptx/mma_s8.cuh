// mma.sync of 8-bit integer operands.
#pragma once

#include "tilewright/ptx/mma.cuh"

namespace tilewright::ptx {

TILEWRIGHT_MMA_4_2_4(16, 8, 32, int8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, uint8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, int8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, uint8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, int8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, uint8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, int8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, uint8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32")

}  // namespace tilewright::ptx
