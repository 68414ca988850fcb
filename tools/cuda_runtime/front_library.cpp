// libcuda.so.1, libcublas.so.13 and libcublasLt.so.13 are empty: they depend on libcudart.so.13, which has the
// functions of all of them, so that they share one emulated GPU.
