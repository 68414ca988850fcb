// target: sm_80
// expect: cp.async.cg.shared.global
// expect: cp.async.ca.shared.global
// expect: cp.async.wait_group
// expect: cp.async.mbarrier.arrive.noinc.shared.b64
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.func @cp_async(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %a = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    %q = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, i32)>
    %bytes = llvm.load %q : !llvm.ptr -> i32
    nvvm.cp.async.shared.global %smem, %a, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    // The last operand is the number of bytes that are read; the rest of the 16 are zeros.
    %to = llvm.getelementptr inbounds %smem[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %to, %a, 16, cache = cg, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
    %to4 = llvm.getelementptr inbounds %smem[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %to4, %a, 4, cache = ca, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    nvvm.cp.async.wait.group 0
    %full = llvm.getelementptr inbounds %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.mbarrier.arrive %full {noinc = true} : !llvm.ptr<3>
    llvm.return
  }
}
