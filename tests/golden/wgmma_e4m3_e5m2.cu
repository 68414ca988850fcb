#include "tilewright/gemm/sm90_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {  // shared memory, (mn, k) -> element offset: Sw<3,4,3> o 0 o ((8,16),(128,1)):((128,1024),(1,16384))
    using Source = tilewright::TmaMatrix;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kTileBytes = 16384;
    static constexpr int kBoxes = 1, kShares = 1;
    static constexpr int kBoxContiguous = 0, kBoxStrided = 0, kBoxBytes = 0;
    static constexpr int kShareContiguous = 0, kShareStrided = 0, kShareBytes = 0;
    // wgmma descriptor: start 0x0, leading 16, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000010000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (2,4):(512,2)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return mn * 512 + k * 2;
    }
  };
  struct OperandB {  // shared memory, (mn, k) -> element offset: Sw<3,4,3> o 0 o ((8,4),(128,1)):((128,1024),(1,4096))
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
    static constexpr int kK = 32, kRegisters = 16;
    static __device__ __forceinline__ void fma(float (&d)[16], tilewright::uint64_t a, tilewright::uint64_t b,
                                               int accumulate) {
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15"
        "}, %16, %17, p, 1, 1;\n}"
        :
        "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "l"(a), "l"(b), "r"(accumulate));
    }
  };
  using ElementC = tilewright::e4m3_t;
  using ElementD = tilewright::e4m3_t;
  using Source = tilewright::TmaMatrix;
  using Output = tilewright::TmaMatrix;
  static constexpr bool kCIsRowMajor = true, kDIsRowMajor = true;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr bool kAccumulatesInHalf = false;
  static constexpr int kTileM = 128, kTileN = 32, kTileK = 128;
  static constexpr int kConsumers = 1, kStages = 4, kConsumerArrivals = 1;
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
  struct Panel8 {  // shared memory, (row, column) -> byte offset: Sw<1,4,3> o 0 o ((8,8),(32,1)):((32,256),(1,2048))
    static constexpr int kLine = 32, kLines = 64, kBoxes = 1;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t row,
                                                           tilewright::uint32_t column) {
      return row * 32 + (column ^ row / 4 % 2 * 16);
    }
  };
  using PanelOfC = Panel8;
  using PanelOfD = Panel8;
  struct SharedMemory {
    static constexpr int kStageBytes = 20480;
    static constexpr int kOutputs = 81920, kOutputBytes = 4096;
    static constexpr int kStaging = 86016, kStagingBytes = 0;
    static constexpr int kOutputBarriers = 86016, kOutputBarrierBytes = 16;
    static constexpr int kRepackingBytes = 0;  // per warp
    static constexpr int kRingBarriers = 86032, kTensorMaps = 86096, kBytes = 86096;
  };
  template <int kAtoms>
  using Mainloop = tilewright::PromotedMainloop<Plan, kAtoms, tilewright::WarpgroupMainloop<Plan, 1>>;
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

extern "C" __global__ void __launch_bounds__(256, 1)
wgmma_e4m3_e5m2(const __grid_constant__ Parameters parameters) {
  tilewright::Sm90Gemm<Plan, Epilogue>(parameters).run();
}
