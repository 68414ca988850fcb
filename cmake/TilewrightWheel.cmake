# What only the build of a wheel needs (pyproject.toml). It compiles the rooms with the flags of the default preset, and
# where there is ccache, paths below the sources count relative to the build: `make` and every wheel share objects.
find_program(TILEWRIGHT_CCACHE ccache)
if(TILEWRIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${TILEWRIGHT_CCACHE})
endif()
