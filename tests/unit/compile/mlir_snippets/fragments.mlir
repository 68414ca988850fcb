// target: sm_90a
// expect: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// expect: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// expect: stmatrix.sync.aligned.m8n8.x4.shared.b16
// expect: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// expect: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// expect: cvt.rn.bf16x2.f32
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @fragments(%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>, i32)>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %d = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %c16 = arith.constant 16 : i32
    %offset = arith.muli %lane, %c16 : i32
    // An i32 index is sign-extended; one that is known to be below 2^31 costs one mul.wide or cvt.
    %row = llvm.getelementptr inbounds %smem[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %a = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %b = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
    %a1 = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32, i32, i32)>
    %a2 = llvm.extractvalue %a[2] : !llvm.struct<(i32, i32, i32, i32)>
    %a3 = llvm.extractvalue %a[3] : !llvm.struct<(i32, i32, i32, i32)>
    %b0 = llvm.extractvalue %b[0] : !llvm.struct<(i32, i32, i32, i32)>
    %b1 = llvm.extractvalue %b[1] : !llvm.struct<(i32, i32, i32, i32)>
    %zero = arith.constant 0.0 : f32
    // Any mma.sync; the accumulators are tied: "0,1,2,3" are the outputs' registers.
    %acc = llvm.inline_asm has_side_effects "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0,$1,$2,$3}, {$8,$9,$10,$11}, {$12,$13}, {$4,$5,$6,$7};", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,r,r" %zero, %zero, %zero, %zero, %a0, %a1, %a2, %a3, %b0, %b1 : (f32, f32, f32, f32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32)>
    %izero = arith.constant 0 : i32
    %iacc = llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0,$1,$2,$3}, {$8,$9,$10,$11}, {$12,$13}, {$4,$5,$6,$7};", "=r,=r,=r,=r,0,1,2,3,r,r,r,r,r,r" %izero, %izero, %izero, %izero, %a0, %a1, %a2, %a3, %b0, %b1 : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    %i0 = llvm.extractvalue %iacc[0] : !llvm.struct<(i32, i32, i32, i32)>
    %f0 = llvm.extractvalue %acc[0] : !llvm.struct<(f32, f32, f32, f32)>
    %f1 = llvm.extractvalue %acc[1] : !llvm.struct<(f32, f32, f32, f32)>
    // Two f32 to bf16x2: the first source is the high half.
    %h = llvm.inline_asm "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f" %f1, %f0 : (f32, f32) -> i32
    nvvm.stmatrix %row, %h, %a1, %a2, %i0 {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32, i32, i32
    llvm.store %f0, %d : f32, !llvm.ptr<1>
    llvm.return
  }
}
