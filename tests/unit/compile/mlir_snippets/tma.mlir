// target: sm_90a
// expect: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// expect: .multicast::cluster
// expect: cp.async.bulk.tensor.2d.global.shared::cta
// expect: cp.reduce.async.bulk.tensor.2d
// The tensor maps lie in the parameter struct, at multiples of 64 bytes. One elected thread of a warp issues.
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @tma(%p: !llvm.ptr {llvm.byval = !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 1 : i32, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %full = llvm.getelementptr inbounds %smem[32768] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %desc_b = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32, i32)>
    %qm = llvm.getelementptr inbounds %p[0, 3] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32, i32)>
    %row = llvm.load %qm : !llvm.ptr -> i32
    %c0 = arith.constant 0 : i32
    nvvm.prefetch tensormap, %p : !llvm.ptr
    %leader = nvvm.elect.sync -> i1
    cf.cond_br %leader, ^issue, ^end
  ^issue:
    %mask = arith.constant 3 : i16
    %hint = arith.constant 1152921504606846976 : i64
    // Into this CTA; isCTAOnly needs PTX 8.6.
    nvvm.cp.async.bulk.tensor.shared.cluster.global %smem, %p, %full, box [%c0, %row] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // With a cache policy.
    nvvm.cp.async.bulk.tensor.shared.cluster.global %smem, %p, %full, box [%c0, %row] l2_cache_hint = %hint {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // Into the same place of every CTA that the mask names.
    %to = llvm.addrspacecast %smem : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %desc_b, %full, box [%c0, %row] multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr
    // Three coordinates: an extra operand in the box.
    nvvm.cp.async.bulk.tensor.shared.cluster.global %smem, %p, %full, box [%c0, %row, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // Stores and reductions belong to bulk groups.
    nvvm.cp.async.bulk.tensor.global.shared.cta %p, %smem, box [%c0, %row] : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.tensor.reduce %p, %smem, box [%c0, %row] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 1 {read}
    nvvm.cp.async.bulk.wait_group 0
    cf.br ^end
  ^end:
    llvm.return
  }
}
