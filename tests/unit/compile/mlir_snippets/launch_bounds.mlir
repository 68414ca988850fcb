// target: sm_90a
// expect: .reqntid 384
// expect: .minnctapersm 1
// expect: .explicitcluster
// expect: .reqnctapercluster 2
// expect: .extern .shared .align 1024 .b8 smem[]
// setmaxnreg needs minctasm (or maxnreg): without it ptxas ignores setmaxnreg (C7508).
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @launch_bounds(%p: !llvm.ptr {llvm.byval = !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 384>, nvvm.minctasm = 1 : i32, nvvm.cluster_dim = array<i32: 2>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %q = llvm.getelementptr inbounds %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32, i32)>
    %d = llvm.load %q : !llvm.ptr -> !llvm.ptr<1>
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
    %c7 = arith.constant 7 : i32
    %warpgroup = arith.shrui %tid, %c7 : i32
    %c0 = arith.constant 0 : i32
    // A warp-uniform value: one shuffle makes the branch uniform for ptxas.
    %mask = arith.constant -1 : i32
    %c31 = arith.constant 31 : i32
    %role = nvvm.shfl.sync idx %mask, %warpgroup, %c0, %c31 : i32 -> i32
    %is_producer = arith.cmpi eq, %role, %c0 : i32
    cf.cond_br %is_producer, ^producer, ^consumer
  ^producer:
    nvvm.setmaxregister decrease 40
    cf.br ^end
  ^consumer:
    nvvm.setmaxregister increase 232
    %addr = llvm.ptrtoint %smem : !llvm.ptr<3> to i32
    %i = arith.extui %tid : i32 to i64
    %at = llvm.getelementptr inbounds %d[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    llvm.store %addr, %at : i32, !llvm.ptr<1>
    cf.br ^end
  ^end:
    llvm.return
  }
}
