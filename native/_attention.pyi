from typing import TypedDict

class Described(TypedDict):
    type: int
    op: int
    sizes: tuple[int, int, int, int]
    steps: tuple[int, int, int, int]
    sources: tuple[int, int, int, int, int]
    viewed: int
    data: int
    name: int
    scale: float

lanes: int
observe: int

def create(
    threads: int, lanes: int, attention: int, set_rows: int, f32: int, f16: int, i64: int
) -> int: ...
def close(attention: int) -> None: ...
def settle(attention: int) -> int: ...
def describe(tensor: int) -> Described: ...
