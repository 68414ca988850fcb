// A libcuda from before CUDA 12: it reports its version and has no cuGetProcAddress_v2.

extern "C" [[gnu::visibility("default")]] int cuDriverGetVersion(int* version) {
  *version = 11080;
  return 0;
}
