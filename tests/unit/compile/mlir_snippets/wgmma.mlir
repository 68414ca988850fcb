// target: sm_90a
// expect: setmaxnreg.dec.sync.aligned.u32
// expect: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// expect: wgmma.wait_group.sync.aligned
// registers: 168
// A warp-specialised kernel: one thread of the producer warpgroup issues TMA loads, a consumer warpgroup runs wgmma with
// both operands in shared memory, then with A in registers. The accumulators cross blocks as one struct, are tied to the
// outputs of the assembly, and are never initialised: the first wgmma of a tile has scale-d 0.
!acc = !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
!params = !llvm.struct<(array<128 x i8>, array<128 x i8>, ptr<1>, i32)>
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @wgmma(%p: !llvm.ptr {llvm.byval = !params, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 384>, nvvm.minctasm = 1 : i32} {
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %sb = llvm.getelementptr inbounds %smem[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %full = llvm.getelementptr inbounds %smem[65536] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr inbounds %smem[65544] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %desc_b = llvm.getelementptr inbounds %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !params
    %qd = llvm.getelementptr inbounds %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, !params
    %qk = llvm.getelementptr inbounds %p[0, 3] : (!llvm.ptr) -> !llvm.ptr, !params
    %d = llvm.load %qd : !llvm.ptr -> !llvm.ptr<1>
    %steps = llvm.load %qk : !llvm.ptr -> i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c7 = arith.constant 7 : i32
    %c31 = arith.constant 31 : i32
    %c64 = arith.constant 64 : i32
    %mask = arith.constant -1 : i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    cf.cond_br %first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %empty, %c2 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    cf.br ^ready
  ^ready:
    nvvm.barrier
    %wg = arith.shrui %tid, %c7 : i32
    %role = nvvm.shfl.sync idx %mask, %wg, %c0, %c31 : i32 -> i32
    %is_producer = arith.cmpi eq, %role, %c0 : i32
    cf.cond_br %is_producer, ^producer, ^consumer

  ^producer:
    nvvm.setmaxregister decrease 40
    %c5 = arith.constant 5 : i32
    %warp = arith.shrui %tid, %c5 : i32
    %uniform_warp = nvvm.shfl.sync idx %mask, %warp, %c0, %c31 : i32 -> i32
    %is_warp0 = arith.cmpi eq, %uniform_warp, %c0 : i32
    cf.cond_br %is_warp0, ^elect, ^end
  ^elect:
    %leader = nvvm.elect.sync -> i1
    cf.cond_br %leader, ^produce(%c0 : i32), ^end
  ^produce(%kp: i32):
    %more_p = arith.cmpi ult, %kp, %steps : i32
    cf.cond_br %more_p, ^wait_empty, ^end
  ^wait_empty:
    // A ring of one stage: the phase of the producer begins at 1, so that its first wait passes.
    %parity_p0 = arith.andi %kp, %c1 : i32
    %parity_p = arith.xori %parity_p0, %c1 : i32
    %passed_p = nvvm.mbarrier.try_wait %empty, %parity_p : !llvm.ptr<3>, i32 -> i1
    cf.cond_br %passed_p, ^load, ^wait_empty
  ^load:
    %bytes = arith.constant 32768 : i32
    %token = nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32 -> i64
    %at_k = arith.muli %kp, %c64 : i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %smem, %p, %full, box [%at_k, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    nvvm.cp.async.bulk.tensor.shared.cluster.global %sb, %desc_b, %full, box [%at_k, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    %kp1 = arith.addi %kp, %c1 : i32
    cf.br ^produce(%kp1 : i32)

  ^consumer:
    nvvm.setmaxregister increase 232
    // Descriptors: (address & 0x3ffff) >> 4 in the low word, 128-byte swizzle and strides in the constant.
    %sa32 = llvm.ptrtoint %smem : !llvm.ptr<3> to i32
    %sb32 = llvm.ptrtoint %sb : !llvm.ptr<3> to i32
    %c4 = arith.constant 4 : i32
    %field = arith.constant 16383 : i32
    %high = arith.constant 4611686293305294848 : i64
    %da0 = arith.shrui %sa32, %c4 : i32
    %da1 = arith.andi %da0, %field : i32
    %da2 = arith.extui %da1 : i32 to i64
    %da = arith.ori %da2, %high : i64
    %db0 = arith.shrui %sb32, %c4 : i32
    %db1 = arith.andi %db0, %field : i32
    %db2 = arith.extui %db1 : i32 to i64
    %db = arith.ori %db2, %high : i64
    %undef = llvm.mlir.undef : !acc
    cf.br ^consume(%c0, %undef : i32, !acc)
  ^consume(%kc: i32, %acc: !acc):
    %more_c = arith.cmpi ult, %kc, %steps : i32
    cf.cond_br %more_c, ^wait_full, ^store
  ^wait_full:
    %parity_c = arith.andi %kc, %c1 : i32
    %passed_c = nvvm.mbarrier.try_wait %full, %parity_c : !llvm.ptr<3>, i32 -> i1
    cf.cond_br %passed_c, ^mma, ^wait_full
  ^mma:
    nvvm.wgmma.fence.aligned
    %scale = arith.minui %kc, %c1 : i32
    %acc_0 = llvm.extractvalue %acc[0] : !acc
    %acc_1 = llvm.extractvalue %acc[1] : !acc
    %acc_2 = llvm.extractvalue %acc[2] : !acc
    %acc_3 = llvm.extractvalue %acc[3] : !acc
    %acc_4 = llvm.extractvalue %acc[4] : !acc
    %acc_5 = llvm.extractvalue %acc[5] : !acc
    %acc_6 = llvm.extractvalue %acc[6] : !acc
    %acc_7 = llvm.extractvalue %acc[7] : !acc
    %acc_8 = llvm.extractvalue %acc[8] : !acc
    %acc_9 = llvm.extractvalue %acc[9] : !acc
    %acc_10 = llvm.extractvalue %acc[10] : !acc
    %acc_11 = llvm.extractvalue %acc[11] : !acc
    %acc_12 = llvm.extractvalue %acc[12] : !acc
    %acc_13 = llvm.extractvalue %acc[13] : !acc
    %acc_14 = llvm.extractvalue %acc[14] : !acc
    %acc_15 = llvm.extractvalue %acc[15] : !acc
    %acc_16 = llvm.extractvalue %acc[16] : !acc
    %acc_17 = llvm.extractvalue %acc[17] : !acc
    %acc_18 = llvm.extractvalue %acc[18] : !acc
    %acc_19 = llvm.extractvalue %acc[19] : !acc
    %acc_20 = llvm.extractvalue %acc[20] : !acc
    %acc_21 = llvm.extractvalue %acc[21] : !acc
    %acc_22 = llvm.extractvalue %acc[22] : !acc
    %acc_23 = llvm.extractvalue %acc[23] : !acc
    %acc_24 = llvm.extractvalue %acc[24] : !acc
    %acc_25 = llvm.extractvalue %acc[25] : !acc
    %acc_26 = llvm.extractvalue %acc[26] : !acc
    %acc_27 = llvm.extractvalue %acc[27] : !acc
    %acc_28 = llvm.extractvalue %acc[28] : !acc
    %acc_29 = llvm.extractvalue %acc[29] : !acc
    %acc_30 = llvm.extractvalue %acc[30] : !acc
    %acc_31 = llvm.extractvalue %acc[31] : !acc
    %acc_32 = llvm.extractvalue %acc[32] : !acc
    %acc_33 = llvm.extractvalue %acc[33] : !acc
    %acc_34 = llvm.extractvalue %acc[34] : !acc
    %acc_35 = llvm.extractvalue %acc[35] : !acc
    %acc_36 = llvm.extractvalue %acc[36] : !acc
    %acc_37 = llvm.extractvalue %acc[37] : !acc
    %acc_38 = llvm.extractvalue %acc[38] : !acc
    %acc_39 = llvm.extractvalue %acc[39] : !acc
    %acc_40 = llvm.extractvalue %acc[40] : !acc
    %acc_41 = llvm.extractvalue %acc[41] : !acc
    %acc_42 = llvm.extractvalue %acc[42] : !acc
    %acc_43 = llvm.extractvalue %acc[43] : !acc
    %acc_44 = llvm.extractvalue %acc[44] : !acc
    %acc_45 = llvm.extractvalue %acc[45] : !acc
    %acc_46 = llvm.extractvalue %acc[46] : !acc
    %acc_47 = llvm.extractvalue %acc[47] : !acc
    %acc_48 = llvm.extractvalue %acc[48] : !acc
    %acc_49 = llvm.extractvalue %acc[49] : !acc
    %acc_50 = llvm.extractvalue %acc[50] : !acc
    %acc_51 = llvm.extractvalue %acc[51] : !acc
    %acc_52 = llvm.extractvalue %acc[52] : !acc
    %acc_53 = llvm.extractvalue %acc[53] : !acc
    %acc_54 = llvm.extractvalue %acc[54] : !acc
    %acc_55 = llvm.extractvalue %acc[55] : !acc
    %acc_56 = llvm.extractvalue %acc[56] : !acc
    %acc_57 = llvm.extractvalue %acc[57] : !acc
    %acc_58 = llvm.extractvalue %acc[58] : !acc
    %acc_59 = llvm.extractvalue %acc[59] : !acc
    %acc_60 = llvm.extractvalue %acc[60] : !acc
    %acc_61 = llvm.extractvalue %acc[61] : !acc
    %acc_62 = llvm.extractvalue %acc[62] : !acc
    %acc_63 = llvm.extractvalue %acc[63] : !acc
    %acc0 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $130, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63}, $128, $129, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,l,l,r" %acc_0, %acc_1, %acc_2, %acc_3, %acc_4, %acc_5, %acc_6, %acc_7, %acc_8, %acc_9, %acc_10, %acc_11, %acc_12, %acc_13, %acc_14, %acc_15, %acc_16, %acc_17, %acc_18, %acc_19, %acc_20, %acc_21, %acc_22, %acc_23, %acc_24, %acc_25, %acc_26, %acc_27, %acc_28, %acc_29, %acc_30, %acc_31, %acc_32, %acc_33, %acc_34, %acc_35, %acc_36, %acc_37, %acc_38, %acc_39, %acc_40, %acc_41, %acc_42, %acc_43, %acc_44, %acc_45, %acc_46, %acc_47, %acc_48, %acc_49, %acc_50, %acc_51, %acc_52, %acc_53, %acc_54, %acc_55, %acc_56, %acc_57, %acc_58, %acc_59, %acc_60, %acc_61, %acc_62, %acc_63, %da, %db, %scale : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i64, i64, i32) -> !acc
    %ofs1 = arith.constant 2 : i64
    %da_1 = arith.addi %da, %ofs1 : i64
    %db_1 = arith.addi %db, %ofs1 : i64
    %acc0_0 = llvm.extractvalue %acc0[0] : !acc
    %acc0_1 = llvm.extractvalue %acc0[1] : !acc
    %acc0_2 = llvm.extractvalue %acc0[2] : !acc
    %acc0_3 = llvm.extractvalue %acc0[3] : !acc
    %acc0_4 = llvm.extractvalue %acc0[4] : !acc
    %acc0_5 = llvm.extractvalue %acc0[5] : !acc
    %acc0_6 = llvm.extractvalue %acc0[6] : !acc
    %acc0_7 = llvm.extractvalue %acc0[7] : !acc
    %acc0_8 = llvm.extractvalue %acc0[8] : !acc
    %acc0_9 = llvm.extractvalue %acc0[9] : !acc
    %acc0_10 = llvm.extractvalue %acc0[10] : !acc
    %acc0_11 = llvm.extractvalue %acc0[11] : !acc
    %acc0_12 = llvm.extractvalue %acc0[12] : !acc
    %acc0_13 = llvm.extractvalue %acc0[13] : !acc
    %acc0_14 = llvm.extractvalue %acc0[14] : !acc
    %acc0_15 = llvm.extractvalue %acc0[15] : !acc
    %acc0_16 = llvm.extractvalue %acc0[16] : !acc
    %acc0_17 = llvm.extractvalue %acc0[17] : !acc
    %acc0_18 = llvm.extractvalue %acc0[18] : !acc
    %acc0_19 = llvm.extractvalue %acc0[19] : !acc
    %acc0_20 = llvm.extractvalue %acc0[20] : !acc
    %acc0_21 = llvm.extractvalue %acc0[21] : !acc
    %acc0_22 = llvm.extractvalue %acc0[22] : !acc
    %acc0_23 = llvm.extractvalue %acc0[23] : !acc
    %acc0_24 = llvm.extractvalue %acc0[24] : !acc
    %acc0_25 = llvm.extractvalue %acc0[25] : !acc
    %acc0_26 = llvm.extractvalue %acc0[26] : !acc
    %acc0_27 = llvm.extractvalue %acc0[27] : !acc
    %acc0_28 = llvm.extractvalue %acc0[28] : !acc
    %acc0_29 = llvm.extractvalue %acc0[29] : !acc
    %acc0_30 = llvm.extractvalue %acc0[30] : !acc
    %acc0_31 = llvm.extractvalue %acc0[31] : !acc
    %acc0_32 = llvm.extractvalue %acc0[32] : !acc
    %acc0_33 = llvm.extractvalue %acc0[33] : !acc
    %acc0_34 = llvm.extractvalue %acc0[34] : !acc
    %acc0_35 = llvm.extractvalue %acc0[35] : !acc
    %acc0_36 = llvm.extractvalue %acc0[36] : !acc
    %acc0_37 = llvm.extractvalue %acc0[37] : !acc
    %acc0_38 = llvm.extractvalue %acc0[38] : !acc
    %acc0_39 = llvm.extractvalue %acc0[39] : !acc
    %acc0_40 = llvm.extractvalue %acc0[40] : !acc
    %acc0_41 = llvm.extractvalue %acc0[41] : !acc
    %acc0_42 = llvm.extractvalue %acc0[42] : !acc
    %acc0_43 = llvm.extractvalue %acc0[43] : !acc
    %acc0_44 = llvm.extractvalue %acc0[44] : !acc
    %acc0_45 = llvm.extractvalue %acc0[45] : !acc
    %acc0_46 = llvm.extractvalue %acc0[46] : !acc
    %acc0_47 = llvm.extractvalue %acc0[47] : !acc
    %acc0_48 = llvm.extractvalue %acc0[48] : !acc
    %acc0_49 = llvm.extractvalue %acc0[49] : !acc
    %acc0_50 = llvm.extractvalue %acc0[50] : !acc
    %acc0_51 = llvm.extractvalue %acc0[51] : !acc
    %acc0_52 = llvm.extractvalue %acc0[52] : !acc
    %acc0_53 = llvm.extractvalue %acc0[53] : !acc
    %acc0_54 = llvm.extractvalue %acc0[54] : !acc
    %acc0_55 = llvm.extractvalue %acc0[55] : !acc
    %acc0_56 = llvm.extractvalue %acc0[56] : !acc
    %acc0_57 = llvm.extractvalue %acc0[57] : !acc
    %acc0_58 = llvm.extractvalue %acc0[58] : !acc
    %acc0_59 = llvm.extractvalue %acc0[59] : !acc
    %acc0_60 = llvm.extractvalue %acc0[60] : !acc
    %acc0_61 = llvm.extractvalue %acc0[61] : !acc
    %acc0_62 = llvm.extractvalue %acc0[62] : !acc
    %acc0_63 = llvm.extractvalue %acc0[63] : !acc
    %acc1 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $130, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63}, $128, $129, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,l,l,r" %acc0_0, %acc0_1, %acc0_2, %acc0_3, %acc0_4, %acc0_5, %acc0_6, %acc0_7, %acc0_8, %acc0_9, %acc0_10, %acc0_11, %acc0_12, %acc0_13, %acc0_14, %acc0_15, %acc0_16, %acc0_17, %acc0_18, %acc0_19, %acc0_20, %acc0_21, %acc0_22, %acc0_23, %acc0_24, %acc0_25, %acc0_26, %acc0_27, %acc0_28, %acc0_29, %acc0_30, %acc0_31, %acc0_32, %acc0_33, %acc0_34, %acc0_35, %acc0_36, %acc0_37, %acc0_38, %acc0_39, %acc0_40, %acc0_41, %acc0_42, %acc0_43, %acc0_44, %acc0_45, %acc0_46, %acc0_47, %acc0_48, %acc0_49, %acc0_50, %acc0_51, %acc0_52, %acc0_53, %acc0_54, %acc0_55, %acc0_56, %acc0_57, %acc0_58, %acc0_59, %acc0_60, %acc0_61, %acc0_62, %acc0_63, %da_1, %db_1, %c1 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i64, i64, i32) -> !acc
    %ofs2 = arith.constant 4 : i64
    %da_2 = arith.addi %da, %ofs2 : i64
    %db_2 = arith.addi %db, %ofs2 : i64
    %acc1_0 = llvm.extractvalue %acc1[0] : !acc
    %acc1_1 = llvm.extractvalue %acc1[1] : !acc
    %acc1_2 = llvm.extractvalue %acc1[2] : !acc
    %acc1_3 = llvm.extractvalue %acc1[3] : !acc
    %acc1_4 = llvm.extractvalue %acc1[4] : !acc
    %acc1_5 = llvm.extractvalue %acc1[5] : !acc
    %acc1_6 = llvm.extractvalue %acc1[6] : !acc
    %acc1_7 = llvm.extractvalue %acc1[7] : !acc
    %acc1_8 = llvm.extractvalue %acc1[8] : !acc
    %acc1_9 = llvm.extractvalue %acc1[9] : !acc
    %acc1_10 = llvm.extractvalue %acc1[10] : !acc
    %acc1_11 = llvm.extractvalue %acc1[11] : !acc
    %acc1_12 = llvm.extractvalue %acc1[12] : !acc
    %acc1_13 = llvm.extractvalue %acc1[13] : !acc
    %acc1_14 = llvm.extractvalue %acc1[14] : !acc
    %acc1_15 = llvm.extractvalue %acc1[15] : !acc
    %acc1_16 = llvm.extractvalue %acc1[16] : !acc
    %acc1_17 = llvm.extractvalue %acc1[17] : !acc
    %acc1_18 = llvm.extractvalue %acc1[18] : !acc
    %acc1_19 = llvm.extractvalue %acc1[19] : !acc
    %acc1_20 = llvm.extractvalue %acc1[20] : !acc
    %acc1_21 = llvm.extractvalue %acc1[21] : !acc
    %acc1_22 = llvm.extractvalue %acc1[22] : !acc
    %acc1_23 = llvm.extractvalue %acc1[23] : !acc
    %acc1_24 = llvm.extractvalue %acc1[24] : !acc
    %acc1_25 = llvm.extractvalue %acc1[25] : !acc
    %acc1_26 = llvm.extractvalue %acc1[26] : !acc
    %acc1_27 = llvm.extractvalue %acc1[27] : !acc
    %acc1_28 = llvm.extractvalue %acc1[28] : !acc
    %acc1_29 = llvm.extractvalue %acc1[29] : !acc
    %acc1_30 = llvm.extractvalue %acc1[30] : !acc
    %acc1_31 = llvm.extractvalue %acc1[31] : !acc
    %acc1_32 = llvm.extractvalue %acc1[32] : !acc
    %acc1_33 = llvm.extractvalue %acc1[33] : !acc
    %acc1_34 = llvm.extractvalue %acc1[34] : !acc
    %acc1_35 = llvm.extractvalue %acc1[35] : !acc
    %acc1_36 = llvm.extractvalue %acc1[36] : !acc
    %acc1_37 = llvm.extractvalue %acc1[37] : !acc
    %acc1_38 = llvm.extractvalue %acc1[38] : !acc
    %acc1_39 = llvm.extractvalue %acc1[39] : !acc
    %acc1_40 = llvm.extractvalue %acc1[40] : !acc
    %acc1_41 = llvm.extractvalue %acc1[41] : !acc
    %acc1_42 = llvm.extractvalue %acc1[42] : !acc
    %acc1_43 = llvm.extractvalue %acc1[43] : !acc
    %acc1_44 = llvm.extractvalue %acc1[44] : !acc
    %acc1_45 = llvm.extractvalue %acc1[45] : !acc
    %acc1_46 = llvm.extractvalue %acc1[46] : !acc
    %acc1_47 = llvm.extractvalue %acc1[47] : !acc
    %acc1_48 = llvm.extractvalue %acc1[48] : !acc
    %acc1_49 = llvm.extractvalue %acc1[49] : !acc
    %acc1_50 = llvm.extractvalue %acc1[50] : !acc
    %acc1_51 = llvm.extractvalue %acc1[51] : !acc
    %acc1_52 = llvm.extractvalue %acc1[52] : !acc
    %acc1_53 = llvm.extractvalue %acc1[53] : !acc
    %acc1_54 = llvm.extractvalue %acc1[54] : !acc
    %acc1_55 = llvm.extractvalue %acc1[55] : !acc
    %acc1_56 = llvm.extractvalue %acc1[56] : !acc
    %acc1_57 = llvm.extractvalue %acc1[57] : !acc
    %acc1_58 = llvm.extractvalue %acc1[58] : !acc
    %acc1_59 = llvm.extractvalue %acc1[59] : !acc
    %acc1_60 = llvm.extractvalue %acc1[60] : !acc
    %acc1_61 = llvm.extractvalue %acc1[61] : !acc
    %acc1_62 = llvm.extractvalue %acc1[62] : !acc
    %acc1_63 = llvm.extractvalue %acc1[63] : !acc
    %acc2 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $130, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63}, $128, $129, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,l,l,r" %acc1_0, %acc1_1, %acc1_2, %acc1_3, %acc1_4, %acc1_5, %acc1_6, %acc1_7, %acc1_8, %acc1_9, %acc1_10, %acc1_11, %acc1_12, %acc1_13, %acc1_14, %acc1_15, %acc1_16, %acc1_17, %acc1_18, %acc1_19, %acc1_20, %acc1_21, %acc1_22, %acc1_23, %acc1_24, %acc1_25, %acc1_26, %acc1_27, %acc1_28, %acc1_29, %acc1_30, %acc1_31, %acc1_32, %acc1_33, %acc1_34, %acc1_35, %acc1_36, %acc1_37, %acc1_38, %acc1_39, %acc1_40, %acc1_41, %acc1_42, %acc1_43, %acc1_44, %acc1_45, %acc1_46, %acc1_47, %acc1_48, %acc1_49, %acc1_50, %acc1_51, %acc1_52, %acc1_53, %acc1_54, %acc1_55, %acc1_56, %acc1_57, %acc1_58, %acc1_59, %acc1_60, %acc1_61, %acc1_62, %acc1_63, %da_2, %db_2, %c1 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i64, i64, i32) -> !acc
    %ofs3 = arith.constant 6 : i64
    %da_3 = arith.addi %da, %ofs3 : i64
    %db_3 = arith.addi %db, %ofs3 : i64
    %acc2_0 = llvm.extractvalue %acc2[0] : !acc
    %acc2_1 = llvm.extractvalue %acc2[1] : !acc
    %acc2_2 = llvm.extractvalue %acc2[2] : !acc
    %acc2_3 = llvm.extractvalue %acc2[3] : !acc
    %acc2_4 = llvm.extractvalue %acc2[4] : !acc
    %acc2_5 = llvm.extractvalue %acc2[5] : !acc
    %acc2_6 = llvm.extractvalue %acc2[6] : !acc
    %acc2_7 = llvm.extractvalue %acc2[7] : !acc
    %acc2_8 = llvm.extractvalue %acc2[8] : !acc
    %acc2_9 = llvm.extractvalue %acc2[9] : !acc
    %acc2_10 = llvm.extractvalue %acc2[10] : !acc
    %acc2_11 = llvm.extractvalue %acc2[11] : !acc
    %acc2_12 = llvm.extractvalue %acc2[12] : !acc
    %acc2_13 = llvm.extractvalue %acc2[13] : !acc
    %acc2_14 = llvm.extractvalue %acc2[14] : !acc
    %acc2_15 = llvm.extractvalue %acc2[15] : !acc
    %acc2_16 = llvm.extractvalue %acc2[16] : !acc
    %acc2_17 = llvm.extractvalue %acc2[17] : !acc
    %acc2_18 = llvm.extractvalue %acc2[18] : !acc
    %acc2_19 = llvm.extractvalue %acc2[19] : !acc
    %acc2_20 = llvm.extractvalue %acc2[20] : !acc
    %acc2_21 = llvm.extractvalue %acc2[21] : !acc
    %acc2_22 = llvm.extractvalue %acc2[22] : !acc
    %acc2_23 = llvm.extractvalue %acc2[23] : !acc
    %acc2_24 = llvm.extractvalue %acc2[24] : !acc
    %acc2_25 = llvm.extractvalue %acc2[25] : !acc
    %acc2_26 = llvm.extractvalue %acc2[26] : !acc
    %acc2_27 = llvm.extractvalue %acc2[27] : !acc
    %acc2_28 = llvm.extractvalue %acc2[28] : !acc
    %acc2_29 = llvm.extractvalue %acc2[29] : !acc
    %acc2_30 = llvm.extractvalue %acc2[30] : !acc
    %acc2_31 = llvm.extractvalue %acc2[31] : !acc
    %acc2_32 = llvm.extractvalue %acc2[32] : !acc
    %acc2_33 = llvm.extractvalue %acc2[33] : !acc
    %acc2_34 = llvm.extractvalue %acc2[34] : !acc
    %acc2_35 = llvm.extractvalue %acc2[35] : !acc
    %acc2_36 = llvm.extractvalue %acc2[36] : !acc
    %acc2_37 = llvm.extractvalue %acc2[37] : !acc
    %acc2_38 = llvm.extractvalue %acc2[38] : !acc
    %acc2_39 = llvm.extractvalue %acc2[39] : !acc
    %acc2_40 = llvm.extractvalue %acc2[40] : !acc
    %acc2_41 = llvm.extractvalue %acc2[41] : !acc
    %acc2_42 = llvm.extractvalue %acc2[42] : !acc
    %acc2_43 = llvm.extractvalue %acc2[43] : !acc
    %acc2_44 = llvm.extractvalue %acc2[44] : !acc
    %acc2_45 = llvm.extractvalue %acc2[45] : !acc
    %acc2_46 = llvm.extractvalue %acc2[46] : !acc
    %acc2_47 = llvm.extractvalue %acc2[47] : !acc
    %acc2_48 = llvm.extractvalue %acc2[48] : !acc
    %acc2_49 = llvm.extractvalue %acc2[49] : !acc
    %acc2_50 = llvm.extractvalue %acc2[50] : !acc
    %acc2_51 = llvm.extractvalue %acc2[51] : !acc
    %acc2_52 = llvm.extractvalue %acc2[52] : !acc
    %acc2_53 = llvm.extractvalue %acc2[53] : !acc
    %acc2_54 = llvm.extractvalue %acc2[54] : !acc
    %acc2_55 = llvm.extractvalue %acc2[55] : !acc
    %acc2_56 = llvm.extractvalue %acc2[56] : !acc
    %acc2_57 = llvm.extractvalue %acc2[57] : !acc
    %acc2_58 = llvm.extractvalue %acc2[58] : !acc
    %acc2_59 = llvm.extractvalue %acc2[59] : !acc
    %acc2_60 = llvm.extractvalue %acc2[60] : !acc
    %acc2_61 = llvm.extractvalue %acc2[61] : !acc
    %acc2_62 = llvm.extractvalue %acc2[62] : !acc
    %acc2_63 = llvm.extractvalue %acc2[63] : !acc
    %acc3 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $130, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63}, $128, $129, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,l,l,r" %acc2_0, %acc2_1, %acc2_2, %acc2_3, %acc2_4, %acc2_5, %acc2_6, %acc2_7, %acc2_8, %acc2_9, %acc2_10, %acc2_11, %acc2_12, %acc2_13, %acc2_14, %acc2_15, %acc2_16, %acc2_17, %acc2_18, %acc2_19, %acc2_20, %acc2_21, %acc2_22, %acc2_23, %acc2_24, %acc2_25, %acc2_26, %acc2_27, %acc2_28, %acc2_29, %acc2_30, %acc2_31, %acc2_32, %acc2_33, %acc2_34, %acc2_35, %acc2_36, %acc2_37, %acc2_38, %acc2_39, %acc2_40, %acc2_41, %acc2_42, %acc2_43, %acc2_44, %acc2_45, %acc2_46, %acc2_47, %acc2_48, %acc2_49, %acc2_50, %acc2_51, %acc2_52, %acc2_53, %acc2_54, %acc2_55, %acc2_56, %acc2_57, %acc2_58, %acc2_59, %acc2_60, %acc2_61, %acc2_62, %acc2_63, %da_3, %db_3, %c1 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i64, i64, i32) -> !acc
    // A from registers: four words of each thread.
    %row = llvm.getelementptr inbounds %smem[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %a = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
    %a1 = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32, i32, i32)>
    %a2 = llvm.extractvalue %a[2] : !llvm.struct<(i32, i32, i32, i32)>
    %a3 = llvm.extractvalue %a[3] : !llvm.struct<(i32, i32, i32, i32)>
    nvvm.wgmma.fence.aligned
    %acc3_0 = llvm.extractvalue %acc3[0] : !acc
    %acc3_1 = llvm.extractvalue %acc3[1] : !acc
    %acc3_2 = llvm.extractvalue %acc3[2] : !acc
    %acc3_3 = llvm.extractvalue %acc3[3] : !acc
    %acc3_4 = llvm.extractvalue %acc3[4] : !acc
    %acc3_5 = llvm.extractvalue %acc3[5] : !acc
    %acc3_6 = llvm.extractvalue %acc3[6] : !acc
    %acc3_7 = llvm.extractvalue %acc3[7] : !acc
    %acc3_8 = llvm.extractvalue %acc3[8] : !acc
    %acc3_9 = llvm.extractvalue %acc3[9] : !acc
    %acc3_10 = llvm.extractvalue %acc3[10] : !acc
    %acc3_11 = llvm.extractvalue %acc3[11] : !acc
    %acc3_12 = llvm.extractvalue %acc3[12] : !acc
    %acc3_13 = llvm.extractvalue %acc3[13] : !acc
    %acc3_14 = llvm.extractvalue %acc3[14] : !acc
    %acc3_15 = llvm.extractvalue %acc3[15] : !acc
    %acc3_16 = llvm.extractvalue %acc3[16] : !acc
    %acc3_17 = llvm.extractvalue %acc3[17] : !acc
    %acc3_18 = llvm.extractvalue %acc3[18] : !acc
    %acc3_19 = llvm.extractvalue %acc3[19] : !acc
    %acc3_20 = llvm.extractvalue %acc3[20] : !acc
    %acc3_21 = llvm.extractvalue %acc3[21] : !acc
    %acc3_22 = llvm.extractvalue %acc3[22] : !acc
    %acc3_23 = llvm.extractvalue %acc3[23] : !acc
    %acc3_24 = llvm.extractvalue %acc3[24] : !acc
    %acc3_25 = llvm.extractvalue %acc3[25] : !acc
    %acc3_26 = llvm.extractvalue %acc3[26] : !acc
    %acc3_27 = llvm.extractvalue %acc3[27] : !acc
    %acc3_28 = llvm.extractvalue %acc3[28] : !acc
    %acc3_29 = llvm.extractvalue %acc3[29] : !acc
    %acc3_30 = llvm.extractvalue %acc3[30] : !acc
    %acc3_31 = llvm.extractvalue %acc3[31] : !acc
    %acc3_32 = llvm.extractvalue %acc3[32] : !acc
    %acc3_33 = llvm.extractvalue %acc3[33] : !acc
    %acc3_34 = llvm.extractvalue %acc3[34] : !acc
    %acc3_35 = llvm.extractvalue %acc3[35] : !acc
    %acc3_36 = llvm.extractvalue %acc3[36] : !acc
    %acc3_37 = llvm.extractvalue %acc3[37] : !acc
    %acc3_38 = llvm.extractvalue %acc3[38] : !acc
    %acc3_39 = llvm.extractvalue %acc3[39] : !acc
    %acc3_40 = llvm.extractvalue %acc3[40] : !acc
    %acc3_41 = llvm.extractvalue %acc3[41] : !acc
    %acc3_42 = llvm.extractvalue %acc3[42] : !acc
    %acc3_43 = llvm.extractvalue %acc3[43] : !acc
    %acc3_44 = llvm.extractvalue %acc3[44] : !acc
    %acc3_45 = llvm.extractvalue %acc3[45] : !acc
    %acc3_46 = llvm.extractvalue %acc3[46] : !acc
    %acc3_47 = llvm.extractvalue %acc3[47] : !acc
    %acc3_48 = llvm.extractvalue %acc3[48] : !acc
    %acc3_49 = llvm.extractvalue %acc3[49] : !acc
    %acc3_50 = llvm.extractvalue %acc3[50] : !acc
    %acc3_51 = llvm.extractvalue %acc3[51] : !acc
    %acc3_52 = llvm.extractvalue %acc3[52] : !acc
    %acc3_53 = llvm.extractvalue %acc3[53] : !acc
    %acc3_54 = llvm.extractvalue %acc3[54] : !acc
    %acc3_55 = llvm.extractvalue %acc3[55] : !acc
    %acc3_56 = llvm.extractvalue %acc3[56] : !acc
    %acc3_57 = llvm.extractvalue %acc3[57] : !acc
    %acc3_58 = llvm.extractvalue %acc3[58] : !acc
    %acc3_59 = llvm.extractvalue %acc3[59] : !acc
    %acc3_60 = llvm.extractvalue %acc3[60] : !acc
    %acc3_61 = llvm.extractvalue %acc3[61] : !acc
    %acc3_62 = llvm.extractvalue %acc3[62] : !acc
    %acc3_63 = llvm.extractvalue %acc3[63] : !acc
    %acc_rs = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $133, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63}, {$128, $129, $130, $131}, $132, p, 1, 1, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,r,r,r,r,l,r" %acc3_0, %acc3_1, %acc3_2, %acc3_3, %acc3_4, %acc3_5, %acc3_6, %acc3_7, %acc3_8, %acc3_9, %acc3_10, %acc3_11, %acc3_12, %acc3_13, %acc3_14, %acc3_15, %acc3_16, %acc3_17, %acc3_18, %acc3_19, %acc3_20, %acc3_21, %acc3_22, %acc3_23, %acc3_24, %acc3_25, %acc3_26, %acc3_27, %acc3_28, %acc3_29, %acc3_30, %acc3_31, %acc3_32, %acc3_33, %acc3_34, %acc3_35, %acc3_36, %acc3_37, %acc3_38, %acc3_39, %acc3_40, %acc3_41, %acc3_42, %acc3_43, %acc3_44, %acc3_45, %acc3_46, %acc3_47, %acc3_48, %acc3_49, %acc3_50, %acc3_51, %acc3_52, %acc3_53, %acc3_54, %acc3_55, %acc3_56, %acc3_57, %acc3_58, %acc3_59, %acc3_60, %acc3_61, %acc3_62, %acc3_63, %a0, %a1, %a2, %a3, %db, %c1 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i32, i32, i32, i32, i64, i32) -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    // One thread of each consumer warpgroup frees the stage.
    %c127 = arith.constant 127 : i32
    %thread = arith.andi %tid, %c127 : i32
    %frees = arith.cmpi eq, %thread, %c0 : i32
    cf.cond_br %frees, ^free, ^next
  ^free:
    %state = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64
    cf.br ^next
  ^next:
    %kc1 = arith.addi %kc, %c1 : i32
    cf.br ^consume(%kc1, %acc_rs : i32, !acc)

  ^store:
    %i = arith.extui %tid : i32 to i64
    %to = llvm.getelementptr inbounds %d[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<64 x f32>
    %r_0 = llvm.extractvalue %acc[0] : !acc
    %r_1 = llvm.extractvalue %acc[1] : !acc
    %r_2 = llvm.extractvalue %acc[2] : !acc
    %r_3 = llvm.extractvalue %acc[3] : !acc
    %r_4 = llvm.extractvalue %acc[4] : !acc
    %r_5 = llvm.extractvalue %acc[5] : !acc
    %r_6 = llvm.extractvalue %acc[6] : !acc
    %r_7 = llvm.extractvalue %acc[7] : !acc
    %r_8 = llvm.extractvalue %acc[8] : !acc
    %r_9 = llvm.extractvalue %acc[9] : !acc
    %r_10 = llvm.extractvalue %acc[10] : !acc
    %r_11 = llvm.extractvalue %acc[11] : !acc
    %r_12 = llvm.extractvalue %acc[12] : !acc
    %r_13 = llvm.extractvalue %acc[13] : !acc
    %r_14 = llvm.extractvalue %acc[14] : !acc
    %r_15 = llvm.extractvalue %acc[15] : !acc
    %r_16 = llvm.extractvalue %acc[16] : !acc
    %r_17 = llvm.extractvalue %acc[17] : !acc
    %r_18 = llvm.extractvalue %acc[18] : !acc
    %r_19 = llvm.extractvalue %acc[19] : !acc
    %r_20 = llvm.extractvalue %acc[20] : !acc
    %r_21 = llvm.extractvalue %acc[21] : !acc
    %r_22 = llvm.extractvalue %acc[22] : !acc
    %r_23 = llvm.extractvalue %acc[23] : !acc
    %r_24 = llvm.extractvalue %acc[24] : !acc
    %r_25 = llvm.extractvalue %acc[25] : !acc
    %r_26 = llvm.extractvalue %acc[26] : !acc
    %r_27 = llvm.extractvalue %acc[27] : !acc
    %r_28 = llvm.extractvalue %acc[28] : !acc
    %r_29 = llvm.extractvalue %acc[29] : !acc
    %r_30 = llvm.extractvalue %acc[30] : !acc
    %r_31 = llvm.extractvalue %acc[31] : !acc
    %r_32 = llvm.extractvalue %acc[32] : !acc
    %r_33 = llvm.extractvalue %acc[33] : !acc
    %r_34 = llvm.extractvalue %acc[34] : !acc
    %r_35 = llvm.extractvalue %acc[35] : !acc
    %r_36 = llvm.extractvalue %acc[36] : !acc
    %r_37 = llvm.extractvalue %acc[37] : !acc
    %r_38 = llvm.extractvalue %acc[38] : !acc
    %r_39 = llvm.extractvalue %acc[39] : !acc
    %r_40 = llvm.extractvalue %acc[40] : !acc
    %r_41 = llvm.extractvalue %acc[41] : !acc
    %r_42 = llvm.extractvalue %acc[42] : !acc
    %r_43 = llvm.extractvalue %acc[43] : !acc
    %r_44 = llvm.extractvalue %acc[44] : !acc
    %r_45 = llvm.extractvalue %acc[45] : !acc
    %r_46 = llvm.extractvalue %acc[46] : !acc
    %r_47 = llvm.extractvalue %acc[47] : !acc
    %r_48 = llvm.extractvalue %acc[48] : !acc
    %r_49 = llvm.extractvalue %acc[49] : !acc
    %r_50 = llvm.extractvalue %acc[50] : !acc
    %r_51 = llvm.extractvalue %acc[51] : !acc
    %r_52 = llvm.extractvalue %acc[52] : !acc
    %r_53 = llvm.extractvalue %acc[53] : !acc
    %r_54 = llvm.extractvalue %acc[54] : !acc
    %r_55 = llvm.extractvalue %acc[55] : !acc
    %r_56 = llvm.extractvalue %acc[56] : !acc
    %r_57 = llvm.extractvalue %acc[57] : !acc
    %r_58 = llvm.extractvalue %acc[58] : !acc
    %r_59 = llvm.extractvalue %acc[59] : !acc
    %r_60 = llvm.extractvalue %acc[60] : !acc
    %r_61 = llvm.extractvalue %acc[61] : !acc
    %r_62 = llvm.extractvalue %acc[62] : !acc
    %r_63 = llvm.extractvalue %acc[63] : !acc
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i3 = arith.constant 3 : i32
    %v0u = llvm.mlir.undef : vector<4xf32>
    %v0_0 = llvm.insertelement %r_0, %v0u[%i0 : i32] : vector<4xf32>
    %v0_1 = llvm.insertelement %r_1, %v0_0[%i1 : i32] : vector<4xf32>
    %v0_2 = llvm.insertelement %r_2, %v0_1[%i2 : i32] : vector<4xf32>
    %v0_3 = llvm.insertelement %r_3, %v0_2[%i3 : i32] : vector<4xf32>
    %at0 = llvm.getelementptr inbounds %to[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v0_3, %at0 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v1u = llvm.mlir.undef : vector<4xf32>
    %v1_0 = llvm.insertelement %r_4, %v1u[%i0 : i32] : vector<4xf32>
    %v1_1 = llvm.insertelement %r_5, %v1_0[%i1 : i32] : vector<4xf32>
    %v1_2 = llvm.insertelement %r_6, %v1_1[%i2 : i32] : vector<4xf32>
    %v1_3 = llvm.insertelement %r_7, %v1_2[%i3 : i32] : vector<4xf32>
    %at1 = llvm.getelementptr inbounds %to[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v1_3, %at1 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v2u = llvm.mlir.undef : vector<4xf32>
    %v2_0 = llvm.insertelement %r_8, %v2u[%i0 : i32] : vector<4xf32>
    %v2_1 = llvm.insertelement %r_9, %v2_0[%i1 : i32] : vector<4xf32>
    %v2_2 = llvm.insertelement %r_10, %v2_1[%i2 : i32] : vector<4xf32>
    %v2_3 = llvm.insertelement %r_11, %v2_2[%i3 : i32] : vector<4xf32>
    %at2 = llvm.getelementptr inbounds %to[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v2_3, %at2 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v3u = llvm.mlir.undef : vector<4xf32>
    %v3_0 = llvm.insertelement %r_12, %v3u[%i0 : i32] : vector<4xf32>
    %v3_1 = llvm.insertelement %r_13, %v3_0[%i1 : i32] : vector<4xf32>
    %v3_2 = llvm.insertelement %r_14, %v3_1[%i2 : i32] : vector<4xf32>
    %v3_3 = llvm.insertelement %r_15, %v3_2[%i3 : i32] : vector<4xf32>
    %at3 = llvm.getelementptr inbounds %to[48] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v3_3, %at3 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v4u = llvm.mlir.undef : vector<4xf32>
    %v4_0 = llvm.insertelement %r_16, %v4u[%i0 : i32] : vector<4xf32>
    %v4_1 = llvm.insertelement %r_17, %v4_0[%i1 : i32] : vector<4xf32>
    %v4_2 = llvm.insertelement %r_18, %v4_1[%i2 : i32] : vector<4xf32>
    %v4_3 = llvm.insertelement %r_19, %v4_2[%i3 : i32] : vector<4xf32>
    %at4 = llvm.getelementptr inbounds %to[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v4_3, %at4 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v5u = llvm.mlir.undef : vector<4xf32>
    %v5_0 = llvm.insertelement %r_20, %v5u[%i0 : i32] : vector<4xf32>
    %v5_1 = llvm.insertelement %r_21, %v5_0[%i1 : i32] : vector<4xf32>
    %v5_2 = llvm.insertelement %r_22, %v5_1[%i2 : i32] : vector<4xf32>
    %v5_3 = llvm.insertelement %r_23, %v5_2[%i3 : i32] : vector<4xf32>
    %at5 = llvm.getelementptr inbounds %to[80] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v5_3, %at5 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v6u = llvm.mlir.undef : vector<4xf32>
    %v6_0 = llvm.insertelement %r_24, %v6u[%i0 : i32] : vector<4xf32>
    %v6_1 = llvm.insertelement %r_25, %v6_0[%i1 : i32] : vector<4xf32>
    %v6_2 = llvm.insertelement %r_26, %v6_1[%i2 : i32] : vector<4xf32>
    %v6_3 = llvm.insertelement %r_27, %v6_2[%i3 : i32] : vector<4xf32>
    %at6 = llvm.getelementptr inbounds %to[96] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v6_3, %at6 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v7u = llvm.mlir.undef : vector<4xf32>
    %v7_0 = llvm.insertelement %r_28, %v7u[%i0 : i32] : vector<4xf32>
    %v7_1 = llvm.insertelement %r_29, %v7_0[%i1 : i32] : vector<4xf32>
    %v7_2 = llvm.insertelement %r_30, %v7_1[%i2 : i32] : vector<4xf32>
    %v7_3 = llvm.insertelement %r_31, %v7_2[%i3 : i32] : vector<4xf32>
    %at7 = llvm.getelementptr inbounds %to[112] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v7_3, %at7 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v8u = llvm.mlir.undef : vector<4xf32>
    %v8_0 = llvm.insertelement %r_32, %v8u[%i0 : i32] : vector<4xf32>
    %v8_1 = llvm.insertelement %r_33, %v8_0[%i1 : i32] : vector<4xf32>
    %v8_2 = llvm.insertelement %r_34, %v8_1[%i2 : i32] : vector<4xf32>
    %v8_3 = llvm.insertelement %r_35, %v8_2[%i3 : i32] : vector<4xf32>
    %at8 = llvm.getelementptr inbounds %to[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v8_3, %at8 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v9u = llvm.mlir.undef : vector<4xf32>
    %v9_0 = llvm.insertelement %r_36, %v9u[%i0 : i32] : vector<4xf32>
    %v9_1 = llvm.insertelement %r_37, %v9_0[%i1 : i32] : vector<4xf32>
    %v9_2 = llvm.insertelement %r_38, %v9_1[%i2 : i32] : vector<4xf32>
    %v9_3 = llvm.insertelement %r_39, %v9_2[%i3 : i32] : vector<4xf32>
    %at9 = llvm.getelementptr inbounds %to[144] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v9_3, %at9 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v10u = llvm.mlir.undef : vector<4xf32>
    %v10_0 = llvm.insertelement %r_40, %v10u[%i0 : i32] : vector<4xf32>
    %v10_1 = llvm.insertelement %r_41, %v10_0[%i1 : i32] : vector<4xf32>
    %v10_2 = llvm.insertelement %r_42, %v10_1[%i2 : i32] : vector<4xf32>
    %v10_3 = llvm.insertelement %r_43, %v10_2[%i3 : i32] : vector<4xf32>
    %at10 = llvm.getelementptr inbounds %to[160] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v10_3, %at10 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v11u = llvm.mlir.undef : vector<4xf32>
    %v11_0 = llvm.insertelement %r_44, %v11u[%i0 : i32] : vector<4xf32>
    %v11_1 = llvm.insertelement %r_45, %v11_0[%i1 : i32] : vector<4xf32>
    %v11_2 = llvm.insertelement %r_46, %v11_1[%i2 : i32] : vector<4xf32>
    %v11_3 = llvm.insertelement %r_47, %v11_2[%i3 : i32] : vector<4xf32>
    %at11 = llvm.getelementptr inbounds %to[176] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v11_3, %at11 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v12u = llvm.mlir.undef : vector<4xf32>
    %v12_0 = llvm.insertelement %r_48, %v12u[%i0 : i32] : vector<4xf32>
    %v12_1 = llvm.insertelement %r_49, %v12_0[%i1 : i32] : vector<4xf32>
    %v12_2 = llvm.insertelement %r_50, %v12_1[%i2 : i32] : vector<4xf32>
    %v12_3 = llvm.insertelement %r_51, %v12_2[%i3 : i32] : vector<4xf32>
    %at12 = llvm.getelementptr inbounds %to[192] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v12_3, %at12 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v13u = llvm.mlir.undef : vector<4xf32>
    %v13_0 = llvm.insertelement %r_52, %v13u[%i0 : i32] : vector<4xf32>
    %v13_1 = llvm.insertelement %r_53, %v13_0[%i1 : i32] : vector<4xf32>
    %v13_2 = llvm.insertelement %r_54, %v13_1[%i2 : i32] : vector<4xf32>
    %v13_3 = llvm.insertelement %r_55, %v13_2[%i3 : i32] : vector<4xf32>
    %at13 = llvm.getelementptr inbounds %to[208] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v13_3, %at13 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v14u = llvm.mlir.undef : vector<4xf32>
    %v14_0 = llvm.insertelement %r_56, %v14u[%i0 : i32] : vector<4xf32>
    %v14_1 = llvm.insertelement %r_57, %v14_0[%i1 : i32] : vector<4xf32>
    %v14_2 = llvm.insertelement %r_58, %v14_1[%i2 : i32] : vector<4xf32>
    %v14_3 = llvm.insertelement %r_59, %v14_2[%i3 : i32] : vector<4xf32>
    %at14 = llvm.getelementptr inbounds %to[224] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v14_3, %at14 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    %v15u = llvm.mlir.undef : vector<4xf32>
    %v15_0 = llvm.insertelement %r_60, %v15u[%i0 : i32] : vector<4xf32>
    %v15_1 = llvm.insertelement %r_61, %v15_0[%i1 : i32] : vector<4xf32>
    %v15_2 = llvm.insertelement %r_62, %v15_1[%i2 : i32] : vector<4xf32>
    %v15_3 = llvm.insertelement %r_63, %v15_2[%i3 : i32] : vector<4xf32>
    %at15 = llvm.getelementptr inbounds %to[240] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v15_3, %at15 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    cf.br ^end
  ^end:
    llvm.return
  }
}
