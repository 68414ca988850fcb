// target: sm_90a
// expect: barrier.cluster.arrive
// expect: barrier.cluster.wait
// expect: mapa.shared::cluster
// expect: mbarrier.arrive.release.cluster.shared::cluster.b64
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @cluster(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 1 : i32, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %id = nvvm.read.ptx.sreg.clusterid.x : i32
    %c1 = arith.constant 1 : i32
    %other = arith.xori %rank, %c1 : i32
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    %remote = nvvm.mapa %smem, %other : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.mbarrier.arrive %remote {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %d = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    llvm.store %id, %d : i32, !llvm.ptr<1>
    llvm.return
  }
}
