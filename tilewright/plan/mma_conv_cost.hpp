// Constants of the estimates of convolutions on mma.sync: stem_conv, stem_wgrad, group_conv and group_wgrad.
#pragma once

namespace tilewright::plan::mma_conv {

/// Time of a kernel that does nothing, beyond ArchLimits::launch_us. This constant, kDramShare and kSmemShare were
/// fitted to random GEMMs of simt_gemm and sm80_gemm (H200, 2026-11-23). The constants of the single families were
/// fitted with them, so that they stayed when the cost model of GEMMs was fitted again.
inline constexpr double kCallUs = 2.8;
inline constexpr double kDramShare = 0.86;  // of DRAM's nominal rate
inline constexpr double kSmemShare = 0.69;  // of the peak rate of shared memory
/// Shares of the peak rate of mma.sync, and of the four instructions that an SM issues at most per clock. They were
/// chosen before kernels of these families were measured.
inline constexpr double kMultiplyShare = 0.6;
inline constexpr double kIssuesPerClock = 4 * 0.6;
/// Share of the shorter of two overlapping times, that of the SMs and that of DRAM, that is exposed.
inline constexpr double kOverlapLoss = 0.2;

}  // namespace tilewright::plan::mma_conv
