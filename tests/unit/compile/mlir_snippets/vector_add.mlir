// target: sm_80
// The parameters of a kernel are one struct by value. nvvm.grid_constant keeps it in parameter space.
module {
  llvm.func @vector_add(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, ptr<1>, ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %pa = llvm.load %p : !llvm.ptr -> !llvm.ptr<1> loc("vector_add.tw":2:5)
    %qb = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, ptr<1>, ptr<1>, i32)>
    %qc = llvm.getelementptr inbounds %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, ptr<1>, ptr<1>, i32)>
    %qn = llvm.getelementptr inbounds %p[0, 3] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, ptr<1>, ptr<1>, i32)>
    %pb = llvm.load %qb : !llvm.ptr -> !llvm.ptr<1>
    %pc = llvm.load %qc : !llvm.ptr -> !llvm.ptr<1>
    %n = llvm.load %qn : !llvm.ptr -> i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %c128 = arith.constant 128 : i32
    %base = arith.muli %cta, %c128 : i32
    %i = arith.addi %base, %tid : i32
    %in = arith.cmpi ult, %i, %n : i32
    cf.cond_br %in, ^add, ^end
  ^add:
    %j = arith.extui %i : i32 to i64
    %a = llvm.getelementptr inbounds %pa[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %b = llvm.getelementptr inbounds %pb[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %c = llvm.getelementptr inbounds %pc[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %x = llvm.load %a : !llvm.ptr<1> -> f32 loc("vector_add.tw":7:9)
    %y = llvm.load %b : !llvm.ptr<1> -> f32 loc("vector_add.tw":8:9)
    %s = llvm.inline_asm "add.rn.f32 $0, $1, $2;", "=f,f,f" %x, %y : (f32, f32) -> f32 loc("vector_add.tw":9:3)
    llvm.store %s, %c : f32, !llvm.ptr<1> loc("vector_add.tw":10:3)
    cf.br ^end
  ^end:
    llvm.return
  } loc("vector_add.tw":1:1)
}
