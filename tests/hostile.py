"""Bytes that no sound program writes, for tests of whatever reads them."""

from __future__ import annotations

import base64
import zlib

# 50 rows of two columns, in a page header of which one byte was changed: Polars 2.1.0 asks for 2 EiB
# of memory, gets none, and stops its process (exit 134).
_ABORT = (
    "eNqVU8Fu00AQXa/cKIcgitRZ2ZIPPlArFVbZOG0To4K0TYIaCKkdVUI9unXcFpUaxcEFLkh8Qg+c+AhU9cAn8CH9"
    "BsQBFXY2TqIckGC0mtmdefP27a42EIMa6MDB7UEJCCEGIXe0bY1MjBYRCLjAXfgIyxJWsrZItTytGWUyN7aP6Vij"
    "d+93L2ejfQm6uUlKy6ahRUBZzL5rcjh9p/xXKqWK96CsVK0gJOdLJV5TM0/5+lRXPNdF87pBc76g5WbBoDLVMlZa"
    "vmrsWnNuqXNNFwjMe9ScK5LT+W2YrChLILp6kbJYHz5pjKjpLYVXOAVqbu/qozQdgy6PtUrlJRCoYByvkp6FUmPT"
    "Ml3nM7X+/6LYlyVg7JsOT4hzpVv/ejp2hW0/dHAI+ymBTpn9oiso3KiIwWDv5aPs6GT4OjJutIdoW10hrYOumcv1"
    "u7BYq9RzITLRUjEUDwJZv7jAvGw6LnCqXyV30L3Yl6Dm0Yx0gtt5KgoLPmC9g3w4xC66doZS9rDeUqgD5cOuIu0c"
    "SyqM4WSzdkHlox4uZlvL1mdI2irWB6F4TIx+kJ5Fo8yuvnk/PknP1+x8OMpO03PbW6+tc7t6+Pb0LLYbic+9w7ie"
    "JLHXSJKmF9c2vEYz4n7k+ZtJ4iWNaBj73prpyofFt/0tP1Mgv9kf7C2ntw=="
)
ABORT = zlib.decompress(base64.b64decode(_ABORT))
