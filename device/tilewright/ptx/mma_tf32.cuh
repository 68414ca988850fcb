// mma.sync of tf32 operands.
#pragma once

#include "tilewright/ptx/mma.cuh"

namespace tilewright::ptx {

TILEWRIGHT_MMA_4_2_4(16, 8, 8, float, float, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 4, float, float, float, "f", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32")

}  // namespace tilewright::ptx
