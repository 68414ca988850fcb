/* The functions of the library tilewright_mlir, which translates MLIR to PTX. It contains MLIR and LLVM; Tilewright opens
 * it at run time (compile/mlir_job.cpp), so that neither Tilewright nor its users link LLVM. */
#ifndef TILEWRIGHT_COMPILE_MLIR_SHIM_ABI_H
#define TILEWRIGHT_COMPILE_MLIR_SHIM_ABI_H

#include <stddef.h>

/* Changes with every change of this file. A library with another number is refused. */
#define TILEWRIGHT_MLIR_ABI 1

/* The major version of LLVM whose MLIR text Tilewright prints. The syntax of operations changes between majors. */
#define TILEWRIGHT_MLIR_LLVM_MAJOR 22

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* text; /* one builtin.module of the dialects llvm, nvvm, arith and cf; terminated by a NUL */
  size_t text_bytes;
  const char* file_name; /* the name of the text in diagnostics and, for operations without a location, in .loc */
  const char* chip;      /* "sm_90a" */
  int ptx_version;       /* 86 for ".version 8.6" */
  int line_info;         /* whether the PTX has .loc directives */
} TilewrightMlirInput;

typedef struct {
  char* ptx; /* NULL if the text was refused, terminated by a NUL otherwise */
  size_t ptx_bytes;
  char* log; /* one line per diagnostic: "file:line:column: error: text" */
  size_t log_bytes;
  double parse_ms, passes_ms, translate_ms, codegen_ms; /* wall time of each stage */
} TilewrightMlirOutput;

/* TILEWRIGHT_MLIR_ABI of the library. */
int tilewright_mlir_abi(void);

/* The version of LLVM in the library: "22.1.8". */
const char* tilewright_mlir_llvm_version(void);

/* Translates a module. Thread-safe. `output` is overwritten; its texts are released by tilewright_mlir_free(). */
void tilewright_mlir_compile(const TilewrightMlirInput* input, TilewrightMlirOutput* output);

void tilewright_mlir_free(TilewrightMlirOutput* output);

#ifdef __cplusplus
}
#endif

#endif
