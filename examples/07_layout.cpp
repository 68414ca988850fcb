// The layout algebra on its own: the offset of element (row, column) of a tile.
#include <cstdio>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright::layout;
  const Layout matrix({8, 8}, {8, 1});  // 8 x 8, row-major
  const Layout tiles =
      zipped_divide(matrix, make_tiler({2, 4}));  // ((2,4),(4,2)): coordinates in a tile, and of the tile
  std::printf("%s\n", to_string(tiles).c_str());

  const Layout transposed({8, 8}, {1, 8});
  const Layout both = composition(matrix, transposed);
  std::printf("%s\n", to_string(both).c_str());
  return to_string(tiles) == "((2,4),(4,2)):((8,1),(16,4))" ? 0 : 1;
}
