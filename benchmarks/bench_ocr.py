"""How much of a scanned page does the extra ``ocr`` read rightly?

    python benchmarks/bench_ocr.py

The page is drawn and spoiled in several ways (tests/support/scanned_pages.py). "Wrong" is the least
number of characters to change, per character of the page, with blanks and without them: words that
run together are wrong by a blank each."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from scanned_pages import LINES, SCANS, scanned, wrong_share

import blendfusion as bf


def main() -> None:
    right = " ".join(LINES)
    session = bf.connect(None, cache=None)
    print(f"{'scan':10} {'wrong':>7} {'without blanks':>15} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for how in SCANS:
            page = Path(folder, f"{how}.png")
            page.write_bytes(scanned(how))
            start = time.perf_counter()
            rows = session.read_documents(page, ocr=True).to_pylist()
            seconds = time.perf_counter() - start
            found = " ".join(" ".join((row["text"] or "").split()) for row in rows)
            bare = wrong_share(found.replace(" ", ""), right.replace(" ", ""))
            print(f"{how:10} {wrong_share(found, right):7.3f} {bare:15.3f} {seconds:8.1f}")
            print(f"           {found[:150]}")


if __name__ == "__main__":
    main()
