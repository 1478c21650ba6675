"""Random queries that compare groups with values of all groups, or of those with equal keys."""

from __future__ import annotations

import random

from group_queries import GroupQueries

_PARTS = ("k", "l", "k % 2", "k / 2", "coalesce(k, 0) > 1", "upper(l)", "4 / (k + 1)")
"""What groups have in common; the last one fails for no group."""


class ShareQueries(GroupQueries):
    """Windows over groups, and subqueries over the same groups or the same rows."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        one = source.random
        self._keys = source.choice(["k", "k", "k, l", "l"])
        self._where = f" WHERE {self._condition()}" if one() < 0.5 else ""
        self._number = self._measure()
        self._having = f" HAVING {self._test()}" if one() < 0.3 else ""

    def query(self) -> str:
        source = self._source
        value, other = self._number, self._number if source.random() < 0.8 else self._measure()
        groups = (
            f"SELECT {self._keys}, {value} AS v, {other} AS o FROM t{self._where} "
            f"GROUP BY {self._keys}{self._having}"
        )
        whole = source.choice([self._window, self._window, self._of_groups, self._of_rows])(groups)
        compared = self._compared(whole)
        form = source.choice([self._filtered, self._filtered, self._shown, self._first])
        return form(groups, compared, whole)

    def _part(self) -> str:
        known = [p for p in _PARTS if ("l" in p.replace("coalesce", "")) <= ("l" in self._keys)]
        known = [p for p in known if ("k" in p) <= ("k" in self._keys)]
        return self._source.choice(known)

    def _window(self, groups: str) -> str:
        over = f"PARTITION BY {self._part()}" if self._source.random() < 0.4 else ""
        return f"{self._all('o')} OVER ({over})"

    def _all(self, value: str) -> str:
        name = self._source.choice(["sum", "sum", "max", "min", "avg", "count"])
        return f"{name}({value})" if self._source.random() < 0.9 else "count(*)"

    def _of_groups(self, groups: str) -> str:
        return f"(SELECT {self._all('o')} FROM ({groups}) AS h)"

    def _of_rows(self, groups: str) -> str:
        return f"(SELECT {self._number} FROM t{self._where})"

    def _compared(self, whole: str) -> str:
        sign = self._source.choice(["=", "<>", "<", "<=", ">", ">=", ">", ">"])
        share = self._source.choice(["0.1", "0.3", "0.5", "1", "2"])
        return self._source.choice(
            [
                f"v {sign} {share} * {whole}",
                f"v * 1.0 / nullif({whole}, 0) {sign} {share}",
                f"coalesce(v, 0) + 1 {sign} {whole}",
                f"v {sign} {whole} AND v > 1",
            ]
        )

    def _filtered(self, groups: str, compared: str, whole: str) -> str:
        windowed = f"SELECT {self._keys}, {compared} AS c FROM ({groups}) AS g"
        text = f"SELECT {self._keys} FROM ({windowed}) AS w WHERE c"
        if "OVER" not in compared and self._source.random() < 0.5:
            text = f"SELECT {self._keys} FROM ({groups}) AS g WHERE {compared}"
        return f"{text} AND k > 0" if "k" in self._keys and self._source.random() < 0.2 else text

    def _shown(self, groups: str, compared: str, whole: str) -> str:
        return f"SELECT {self._keys}, {compared} AS c FROM ({groups}) AS g"

    def _first(self, groups: str, compared: str, whole: str) -> str:
        order = self._source.choice([f"v - {whole}", f"v * 1.0 / nullif({whole}, 0)", "v"])
        keys = ", ".join(f"{key} NULLS FIRST" for key in self._keys.split(", "))
        windowed = f"SELECT {self._keys}, {compared} AS c, {order} AS s FROM ({groups}) AS g"
        kept = " WHERE c" if self._source.random() < 0.5 else ""
        rows = (
            f"SELECT {self._keys} FROM ({windowed}) AS w{kept} ORDER BY s DESC NULLS LAST, {keys}"
        )
        return f"{rows} LIMIT {self._source.choice([1, 2, 5])}"
