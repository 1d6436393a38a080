#pragma once

// Names that inline assembly needs and that differ between families of chips.

#if defined(__GFX12__)
#define LDS_WAIT(n) "s_wait_dscnt " #n "\n"
#define LOAD_WAIT(n) "s_wait_loadcnt " #n "\n"
#define STORE_WAIT(n) "s_wait_storecnt " #n "\n"
#define BARRIER "s_barrier_signal -1\ns_barrier_wait -1\n"
#else
#define LDS_WAIT(n) "s_waitcnt lgkmcnt(" #n ")\n"
#define LOAD_WAIT(n) "s_waitcnt vmcnt(" #n ")\n"
#define BARRIER "s_barrier\n"
#if defined(__GFX9__)
#define STORE_WAIT(n) "s_waitcnt vmcnt(" #n ")\n"
#else
#define STORE_WAIT(n) "s_waitcnt_vscnt null, " #n "\n"
#endif
#endif

#define DS_ADD "ds_add_u32"
#if defined(__GFX11__) || defined(__GFX12__)
#define DS_STORE "ds_store_b32"
#define GLOBAL_STORE "global_store_b32"
#define GLOBAL_LOAD "global_load_b32"
#else
#define DS_STORE "ds_write_b32"
#define GLOBAL_STORE "global_store_dword"
#define GLOBAL_LOAD "global_load_dword"
#endif

#if defined(__GFX9__)
#define ADD_U32 "v_add_u32_e32"
#define VCC "vcc"
#define EXEC "exec"
#define MOVE_MASK "s_mov_b64"
#define SAVED_MASK "s[90:91]"
#else
#define ADD_U32 "v_add_nc_u32_e32"
#define VCC "vcc_lo"
#define EXEC "exec_lo"
#define MOVE_MASK "s_mov_b32"
#define SAVED_MASK "s90"
#endif
