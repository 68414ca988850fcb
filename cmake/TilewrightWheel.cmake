# Settings for building a wheel (pyproject.toml). The rooms are compiled with the flags of the default preset and, if
# ccache is installed, with paths relative to the source folder, so that `make` and all wheels share cached objects.
find_program(TILEWRIGHT_CCACHE ccache)
if(TILEWRIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${TILEWRIGHT_CCACHE})
endif()
