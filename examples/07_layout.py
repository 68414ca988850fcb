"""The layout algebra on its own: the offset of element (row, column) of a tile."""

from tilewright.layout import Layout, composition, zipped_divide

matrix = Layout((8, 8), (8, 1))  # 8 x 8, row-major
tiles = zipped_divide(matrix, (2, 4))  # coordinates in a tile, and of the tile
print(tiles)
assert str(tiles) == "((2,4),(4,2)):((8,1),(16,4))"
assert tiles((1, 2), (0, 1)) == matrix(1, 4 + 2)
print(composition(matrix, Layout((8, 8), (1, 8))))
print(matrix.draw(tile=(2, 4)))  # a notebook shows a picture
