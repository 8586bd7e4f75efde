# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # CuTe's layouts
# A layout is a function from coordinates to indices: a shape, and a stride for each of its extents. Open this file as a
# notebook with jupytext, where a layout on the last line of a cell is a picture, or run it.

# %%
from cutlet.layouts import *

by_rows, by_columns = Layout((4, 6), (6, 1)), Layout((4, 6), (1, 4))
print(by_rows.table())
by_rows

# %% [markdown]
# A coordinate is a tuple, or an integer that counts along columns. `None` keeps a mode.

# %%
print(by_rows(2, 3), by_rows(14), by_rows(2, None))

# %% [markdown]
# ## Composition
# `a @ b` is the function `c -> a(b(c))`. Its second operand picks coordinates of the first one: here, every other row.

# %%
every_other_row = by_rows @ (Layout(2, 2), Layout(6, 1))
print(every_other_row)
print((Layout("(4,6):(6,1)") @ Layout(4, 2)).explain())
every_other_row

# %% [markdown]
# ## Tiles
# A division makes two modes of one: within a tile, and from tile to tile. The columns of the picture are tiles.

# %%
tiles = zipped_divide(Layout((8, 6), (1, 8)), (4, 2))
print(tiles, "tile 3 begins at", tiles(0, 3))
tiles

# %% [markdown]
# A product repeats a layout as another one says.

# %%
print(blocked_product(Layout((2, 2)), Layout((3, 4))), raked_product(Layout((2, 2)), Layout((3, 4))))

# %% [markdown]
# ## Bank conflicts
# 32 threads read a column of 32 numbers of 32 bits. By rows of 32, all of them are in one bank. A swizzle permutes the
# numbers of each row, so that the column has one number in each bank.

# %%
tile = Layout((32, 32), (32, 1))
print(tile(None, 0).bank_conflicts(32))
swizzled = composition("Sw<5,0,5>", tile)
print(swizzled(None, 0).bank_conflicts(32))
small = composition("Sw<3,0,3>", Layout((8, 8), (8, 1)))
small

# %% [markdown]
# ## Threads and values
# What each of 32 threads holds of the result of `mma.sync.m16n8k16`: the first mode is the thread, the second one its
# values.

# %%
holders = Layout("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))")
picture = holders.thread_values((16, 8))
print(len(picture), "characters of SVG")
