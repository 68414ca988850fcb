#include "tilewright/gemm/sm90_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {  // shared memory, (mn, k) -> element offset: Sw<3,2,3> o 0 o ((32,4),(8,4)):((1,1024),(32,256))
    using Source = tilewright::TmaMatrix;
    static constexpr bool kIsKMajor = false, kIsPointerArray = false;
    static constexpr int kTileBytes = 16384;
    static constexpr int kBoxes = 4, kShares = 1;
    static constexpr int kBoxContiguous = 32, kBoxStrided = 0, kBoxBytes = 4096;
    static constexpr int kShareContiguous = 0, kShareStrided = 0, kShareBytes = 0;
    static constexpr int kElementBits = 32, kStaggeredThreads = 16, kStaggeredLoads = 2;
    // (thread, load, mn) -> element offset: Sw<3,2,3> o 0 o ((4,8,(2,2)),(2,2),2):((32,1,(16,1024)),(8,128),2048)
    static __device__ constexpr tilewright::uint32_t fragment_offset(int thread, int load,
                                                                     [[maybe_unused]] int mn) {
      return thread >> 6 << 10 | (thread & 3) << 5 | load >> 1 << 7 | mn << 11 | thread >> 2 & 7 ^ thread >> 1 & 0x10 ^ load << 3 ^ (thread & 3) << 2;
    }
    // k -> element offset: 4:256
    static __device__ constexpr tilewright::uint32_t fragment_step(int k) {
      return k << 8;
    }
  };
  struct OperandB {  // shared memory, (mn, k) -> element offset: Sw<3,2,3> o 0 o ((8,4),(32,1)):((32,256),(1,1024))
    using Source = tilewright::TmaMatrix;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kTileBytes = 4096;
    static constexpr int kBoxes = 1, kShares = 1;
    static constexpr int kBoxContiguous = 0, kBoxStrided = 0, kBoxBytes = 0;
    static constexpr int kShareContiguous = 0, kShareStrided = 0, kShareBytes = 0;
    // wgmma descriptor: start 0x0, leading 16, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000010000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (1,4):(0,2)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return k * 2;
    }
  };
  struct Wgmma {
    using Accumulator = float;
    static constexpr int kK = 8, kRegisters = 16;
    static __device__ __forceinline__ void fma(float (&d)[16], const tilewright::uint32_t (&a)[4], tilewright::uint64_t b,
                                               int accumulate) {
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15"
        "}, {%16, %17, %18, %19}, %20, p, 1, 1;\n}"
        :
        "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
    }
  };
  using ElementC = float;
  using ElementD = float;
  using Source = tilewright::TmaMatrix;
  using Output = tilewright::TmaMatrix;
  static constexpr bool kCIsRowMajor = true, kDIsRowMajor = true;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr bool kAccumulatesInHalf = false;
  static constexpr int kTileM = 128, kTileN = 32, kTileK = 32;
  static constexpr int kConsumers = 2, kStages = 4, kConsumerArrivals = 4;
  static constexpr int kSharedTaps = 1, kSharedStep = 0;
  static constexpr bool kIsPingPong = false;
  static constexpr int kClusterM = 1, kClusterN = 1;
  using Raster = tilewright::Raster<1, false>;
  using Scheduler = tilewright::PersistentTiles<Plan>;
  using Groups = tilewright::NoGroups;
  static constexpr int kSplitK = 1, kCounterBytes = 286720, kReductionCounters = 32768;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232, kPlainLoadWords = 0;
  static constexpr int kPanelColumns = 32, kSubtilePanels = 1, kOutputBuffers = 2;
  static constexpr int kTensorMapSlots = 5;
  static constexpr int kTmaOutputs = 0, kTmaOutputBytes = 0;
  static constexpr int kSourceBytes = 16, kStoreBytes = 16;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),4),(2,2,4)):(((2@1,1@0),16@0),(1@1,8@0,8@1))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4 + warp * 16;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2;
    }
  };
  struct Panel32 {  // shared memory, (row, column) -> byte offset: Sw<3,4,3> o 0 o ((8,8),(32,1)):((128,1024),(4,8192))
    static constexpr int kLine = 32, kLines = 64, kBoxes = 1;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t row,
                                                           tilewright::uint32_t column) {
      return row * 128 + (column * 4 ^ row % 8 * 16);
    }
  };
  using PanelOfC = Panel32;
  using PanelOfD = Panel32;
  struct SharedMemory {
    static constexpr int kStageBytes = 20480;
    static constexpr int kOutputs = 81920, kOutputBytes = 16384;
    static constexpr int kStaging = 114688, kStagingBytes = 0;
    static constexpr int kOutputBarriers = 114688, kOutputBarrierBytes = 16;
    static constexpr int kRepackingBytes = 0;  // per warp
    static constexpr int kRingBarriers = 114720, kTensorMaps = 114784, kBytes = 114784;
  };
  template <int kAtoms>
  using Mainloop = tilewright::RegisterMainloop<Plan, kAtoms>;
};

// linear_combination f32 add(mul($alpha,acc),mul($beta,c))
struct Epilogue {
  using Compute = float;
  static constexpr int kColumnsPerElement = 1;
  struct Parameters {
    Compute alpha_;
    Compute beta_;
  };
  static constexpr bool kReadsSource = true;
  static constexpr bool kHasTensors = false;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {
    return parameters.beta_ != Compute(0);
  }
  template <class Visitor>
  static __device__ __forceinline__ void for_each_vector([[maybe_unused]] const Parameters& parameters,
                                                         [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kRowVectors = 0, kColumnVectors = 0;
  template <class Visitor>
  static __device__ __forceinline__ void for_each_reduction([[maybe_unused]] const Parameters& parameters,
                                                            [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kReductions = 0, kColumnResults = 0, kRowResults = 0, kSingleResults = 0;
  template <int kCount, class Place>
  static __device__ __forceinline__ void apply(Compute (&values)[kCount],
                                               [[maybe_unused]] const Compute (&source)[kCount],
                                               [[maybe_unused]] const Parameters& parameters,
                                               [[maybe_unused]] const Place& place) {
    #pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Compute x0 = parameters.alpha_;
      const Compute x1 = values[i];
      const Compute x3 = parameters.beta_;
      const Compute x4 = source[i];
      const Compute x5 = tilewright::numeric::mul(x3, x4);
      const Compute x6 = tilewright::numeric::fma(x0, x1, x5);
      values[i] = x6;
    }
  }
};

using Parameters = tilewright::Sm90GemmParameters<Plan, Epilogue::Parameters>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 256);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 384);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 388);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 392);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batches) == 396);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_a) == 400);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_b) == 404);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_c) == 408);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 412);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 416);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 420);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 424);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 428);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 432);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 436);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 440);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 444);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 448);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_a) == 576);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_b) == 584);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 592);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 600);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 608);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 612);
static_assert(sizeof(Parameters) == 640);

extern "C" __global__ void __launch_bounds__(384, 1)
wgmma_tf32_mn_major(const __grid_constant__ Parameters parameters) {
  tilewright::Sm90Gemm<Plan, Epilogue>(parameters).run();
}
