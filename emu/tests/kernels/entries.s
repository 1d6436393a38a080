// A kernel in code without symbols of functions. In front of it are an instruction that the
// emulator doesn't implement, and data that would be the first half of v_cndmask_b32_e64.
.text
.globl sets_four
first:
  s_endpgm
  image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D
.p2align 8
  .fill 63, 4, 0xbf800000
  .long 0xd5010000
sets_four:
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v0, 2, v0
  v_mov_b32 v1, 4
  s_waitcnt lgkmcnt(0)
  global_store_b32 v0, v1, s[4:5]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel sets_four
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - .name: sets_four
    .symbol: sets_four.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 8
    .max_flat_workgroup_size: 1024
    .args:
      - .address_space: global
        .offset: 0
        .size: 8
        .value_kind: global_buffer
...
.end_amdgpu_metadata
