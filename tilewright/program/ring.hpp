// A ring of stages in shared memory between the threads that fill them and those that read them, with a full and an
// empty mbarrier for each stage.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "tilewright/program/instructions.hpp"

namespace tilewright::program {

/// How a ring is used. Arrivals are counted for each stage.
struct RingUse {
  int stages = 2;
  std::int64_t stage_bytes = 0;        // of shared memory; rounded up to a multiple of 1024
  std::int64_t transaction_bytes = 0;  // that TMA loads to a stage; 0: TMA loads nothing
  int writer_arrivals = 1;             // arrivals of the threads that write, besides the bytes of TMA
  int reader_arrivals = 1;             // arrivals of the threads that read, in all CTAs that the loads reach
};

class Ring {
 public:
  /// Reserves the stages and the mbarriers. @throws InvalidArgument for fewer than two stages, for numbers of arrivals
  /// that an mbarrier does not count, and for targets before sm_90
  Ring(KernelBuilder& k, const RingUse& use);

  const RingUse& use() const { return use_; }

  /// Appends the initialisation of the mbarriers, and the fence that shows it to TMA. One thread executes it; the other
  /// threads of the cluster wait for it before they use the ring.
  void initialise() const;

  /// The shared address of a stage, and of its mbarriers. @throws InvalidArgument for an index that is no stage
  Number stage(const Number& index) const { return stages_.address + checked(index) * use_.stage_bytes; }
  Number full(const Number& index) const { return barriers_.address + checked(index) * 8; }
  Number empty(const Number& index) const { return barriers_.address + use_.stages * 8 + checked(index) * 8; }

 private:
  const Number& checked(const Number& index) const;

  KernelBuilder* kernel_;
  RingUse use_;
  SharedMemory stages_, barriers_;
};

/// The stage that comes next, and the parity of the phase that its reader waits for.
class RingPosition {
 public:
  explicit RingPosition(KernelBuilder& k, const Ring& ring);
  Number stage() const { return stage_.get(); }
  Number parity() const { return parity_.get(); }
  void advance() const;
  /// The stage after this one, and its parity.
  std::pair<Number, Number> next() const;

 private:
  std::int64_t stages_;
  NumberCell stage_, parity_;
};

/// The part of a thread that writes. Made where the role begins.
class RingWriter {
 public:
  RingWriter(KernelBuilder& k, const Ring& ring) : kernel_(&k), ring_(&ring), at_(k, ring) {}

  /// Waits until the next stage is empty and, if TMA loads it, announces its bytes. `fill` gets the number of the
  /// stage; it appends the copies, and the arrivals of writers other than the announcement.
  void write(const std::function<void(const Number& stage)>& fill) const;
  /// The same in two pieces; the first returns the stage.
  Number begin_write() const;
  void end_write() const;
  /// Waits until all stages have been read. Needed at the end if other CTAs of a cluster read this CTA's loads.
  void wait_for_readers() const;

 private:
  KernelBuilder* kernel_;
  const Ring* ring_;
  RingPosition at_;
};

/// The part of threads that read. Made where the role begins.
class RingReader {
 public:
  /// `release` appends what frees the stage with the given empty barrier: the arrivals of this role. The default lets
  /// each thread arrive.
  RingReader(KernelBuilder& k, const Ring& ring, std::function<void(const Number& empty_barrier)> release = {});

  /// Waits until the next stage is full. `use` gets its number. The stage is released at once.
  void read(const std::function<void(const Number& stage)>& use) const;
  /// The same for wgmma, which reads stages after `use` has returned: `use` commits one group of wgmma. The stage is
  /// released when the next call has waited for that group, and the last one by drain(). `accumulators` are those that
  /// the groups write. @throws InvalidArgument if `use` commits no group
  void read_by_wgmma(const ValueCells& accumulators, const std::function<void(const Number& stage)>& use) const;
  /// The beginning of both, which returns the stage, and their ends. They append the fences between accesses of threads
  /// and of TMA or wgmma: fence.proxy.async before wgmma reads what cp.async wrote, and before a stage is released that
  /// TMA will overwrite.
  Number begin_read() const;
  Number begin_read_by_wgmma() const;
  /// While a stage is read: waits until the one after it is full, and returns its number. If `is_last` is not 0, there
  /// is none to wait for, and the result is the stage that is read. The next stage needs no begin_read() then: stage()
  /// is its number once end_read() has released this one.
  Number begin_read_ahead(const Number& is_last) const;
  Number stage() const { return at_.stage(); }
  void end_read(const Number& stage) const;
  void end_read_by_wgmma(const Number& stage, const ValueCells& accumulators) const;
  /// Waits for all groups of wgmma and releases the last stage.
  void drain(const ValueCells& accumulators) const;
  /// The parts of end_read_by_wgmma(), for a stage with several groups of wgmma. hold() ends the reading of a stage
  /// that wgmma still reads, without a wait; release_held() releases it, and must come before the next hold(). @pre the
  /// groups that read the held stage have been waited for
  void hold(const Number& stage) const;
  void release_held() const;

 private:
  KernelBuilder* kernel_;
  const Ring* ring_;
  RingPosition at_;
  std::function<void(const Number&)> release_;
  NumberCell held_;  // the stage that wgmma still reads
  NumberCell is_held_;
  mutable std::int64_t groups_before_ = 0;  // of wgmma that were recorded before the stage was read
};

}  // namespace tilewright::program
