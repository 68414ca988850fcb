// target: sm_80
// expect: ld.global.v4.b32
// expect: st.global.v4.b32
// expect: @%p
// expect: ld.shared.v4.b32
// expect: fma.rn.f32
// expect: cvt.rn.bf16x2.f32
// expect: cvt.rn.f16x2.f32
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @memory(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %src = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    %qd = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, ptr<1>, i32)>
    %dst = llvm.load %qd : !llvm.ptr -> !llvm.ptr<1>
    %qn = llvm.getelementptr inbounds %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr<1>, ptr<1>, i32)>
    %n = llvm.load %qn : !llvm.ptr -> i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %in = arith.cmpi ult, %tid, %n : i32
    %i = arith.extui %tid : i32 to i64
    %a = llvm.getelementptr inbounds %src[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<16 x i8>
    %d = llvm.getelementptr inbounds %dst[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<16 x i8>
    %s = llvm.getelementptr inbounds %smem[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // A predicated load with zeros where it is not taken: assembly; else a branch with a block argument.
    %pred = arith.extui %in : i1 to i32
    %v = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $5, 0; mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; @p ld.global.v4.b32 {$0, $1, $2, $3}, [$4]; }", "=&r,=&r,=&r,=&r,l,r,~{memory}" %a, %pred : (!llvm.ptr<1>, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    %v0 = llvm.extractvalue %v[0] : !llvm.struct<(i32, i32, i32, i32)>
    %w = llvm.load %a {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    llvm.store %w, %s {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.barrier
    %z = llvm.load %s {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z0 = llvm.extractelement %z[%c0 : i32] : vector<4xf32>
    %z1 = llvm.extractelement %z[%c1 : i32] : vector<4xf32>
    // Without the fastmath flag "contract", mul and add stay mul.rn and add.rn; fma is explicit.
    %f = llvm.intr.fma(%z0, %z1, %z0) : (f32, f32, f32) -> f32
    %m = llvm.fmul %z0, %z1 : f32
    %pair = llvm.mlir.undef : vector<2xf32>
    %pair0 = llvm.insertelement %f, %pair[%c0 : i32] : vector<2xf32>
    %pair1 = llvm.insertelement %m, %pair0[%c1 : i32] : vector<2xf32>
    %h = llvm.fptrunc %pair1 : vector<2xf32> to vector<2xbf16>
    %g = llvm.fptrunc %pair1 : vector<2xf32> to vector<2xf16>
    %hi = llvm.bitcast %h : vector<2xbf16> to i32
    %gi = llvm.bitcast %g : vector<2xf16> to i32
    %back = llvm.bitcast %m : f32 to i32
    %o = llvm.mlir.undef : vector<4xi32>
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %o0 = llvm.insertelement %hi, %o[%c0 : i32] : vector<4xi32>
    %o1 = llvm.insertelement %gi, %o0[%c1 : i32] : vector<4xi32>
    %o2 = llvm.insertelement %back, %o1[%c2 : i32] : vector<4xi32>
    %o3 = llvm.insertelement %v0, %o2[%c3 : i32] : vector<4xi32>
    cf.cond_br %in, ^store, ^end
  ^store:
    llvm.store %o3, %d {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
    cf.br ^end
  ^end:
    llvm.return
  }
}
