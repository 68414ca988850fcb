// target: sm_90a
// expect: bar.sync
// expect: barrier.arrive
// expect: mbarrier.init.shared.b64
// expect: mbarrier.try_wait.parity
// expect: fence.mbarrier_init.release.cluster
// expect: fence.proxy.async.shared::cta
// Barrier ids are constants: an id in a register makes ptxas reserve all 16 barriers.
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @barriers(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256>, nvvm.minctasm = 1 : i32} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %full = llvm.getelementptr inbounds %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr inbounds %smem[1032] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c128 = arith.constant 128 : i32
    %c256 = arith.constant 256 : i32
    %bytes = arith.constant 4096 : i32
    %q = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, i32)>
    %phase = llvm.load %q : !llvm.ptr -> i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    cf.cond_br %first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %empty, %c128 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    cf.br ^ready
  ^ready:
    nvvm.barrier
    %is_low = arith.cmpi ult, %tid, %c128 : i32
    cf.cond_br %is_low, ^producer, ^consumer
  ^producer:
    %state0 = nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.mbarrier.expect_tx %full, %bytes : !llvm.ptr<3>, i32
    // Named barrier 1 of 256 threads: these arrive, the consumers wait.
    nvvm.barrier.arrive id = %c1 number_of_threads = %c256
    cf.br ^end
  ^consumer:
    nvvm.barrier id = %c1 number_of_threads = %c256
    // The loop of a wait; the blocking nvvm.mbarrier.try_wait.parity becomes assembly without a memory clobber.
    cf.br ^wait
  ^wait:
    %done = nvvm.mbarrier.try_wait %full, %phase : !llvm.ptr<3>, i32 -> i1
    cf.cond_br %done, ^passed, ^wait
  ^passed:
    %state1 = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64
    // A named barrier of one warpgroup.
    nvvm.barrier id = %c2 number_of_threads = %c128
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    cf.br ^end
  ^end:
    llvm.return
  }
}
