// libcuda.so.1 is empty: it depends on libcudart.so.13, which has the functions of the driver, too, so that both
// libraries share one emulated GPU.
