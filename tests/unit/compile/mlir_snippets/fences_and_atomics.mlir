// target: sm_90a
// expect: griddepcontrol.wait
// expect: griddepcontrol.launch_dependents
// expect: ld.acquire.gpu.global.b32
// expect: st.release.gpu.global.b32
// expect: red.release.gpu.global.add.s32
// expect: red.global.add.noftz.bf16x2
// expect: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
// expect: redux.sync.add.s32
// MLIR 22 drops the ordering of llvm.atomicrmw; a load or store with an ordering keeps it.
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.func @fences_and_atomics(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 1 : i32} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %full = llvm.getelementptr inbounds %smem[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.griddepcontrol wait
    %d = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    %c1 = arith.constant 1 : i32
    %mask = arith.constant -1 : i32
    %seen = llvm.load %d atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    %sum = nvvm.redux.sync add %seen, %mask : i32 -> i32
    nvvm.fence.sc.cluster
    nvvm.memory.barrier #nvvm.mem_scope<gpu>
    llvm.inline_asm has_side_effects "red.release.gpu.global.add.s32 [$0], $1;", "l,r,~{memory}" %d, %c1 : (!llvm.ptr<1>, i32) -> ()
    llvm.inline_asm has_side_effects "red.global.add.noftz.bf16x2 [$0], $1;", "l,r,~{memory}" %d, %sum : (!llvm.ptr<1>, i32) -> ()
    // Bulk copies without a tensor map: destination, barrier, source, bytes.
    %bytes = arith.constant 1024 : i32
    %to = llvm.addrspacecast %smem : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.shared.cluster.global %to, %d, %full, %bytes : !llvm.ptr<7>, !llvm.ptr<1>
    llvm.store %sum, %d atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    nvvm.griddepcontrol launch_dependents
    llvm.return
  }
}
