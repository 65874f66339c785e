#!/usr/bin/python3
"""Tests tools/performance/plot.py. Ends with 77 (skipped) where matplotlib is missing."""
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
PLOT = Path(__file__).resolve().parents[2] / "tools" / "performance" / "plot.py"
sys.path.insert(0, str(PLOT.parent))
import plot  # noqa: E402

PAGE = """# Speed
## Prefill & decode
| file | work | Hearth tok/s | llama.cpp tok/s | ratio |
| --- | --- | --- | --- | --- |
| Q4_K_M | decode | 15.8 (17.4 GB/s) | 11.1; 11.9 with flash attention | 1.33 |
| | prefill | 88.2 | not measured | |

| model | Hearth ms | peer ms |
| --- | --- | --- |
| small | ~20; 18.5 warm | 25 |

## How exact
| model | mean KL |
| --- | --- |
| small | 3e-7 |
"""


class Tables(unittest.TestCase):
    def test_figures_labels_and_names(self):
        tables = plot.read_tables(PAGE)
        self.assertEqual([(r.label, r.hearth, r.peer) for t in tables for r in t.rows],
                         [("Q4_K_M\ndecode", 15.8, 11.9), ("Q4_K_M\nprefill", 88.2, None), ("small", 18.5, 25.0)])
        self.assertEqual(plot.file_names(tables), ["prefill-decode.png", "prefill-decode-2.png"])

    def test_the_real_page_has_tables(self):
        page = PLOT.parents[2] / "docs" / "performance.md"
        for table in plot.read_tables(page.read_text(encoding="utf-8")):
            self.assertTrue(table.rows)

    def test_errors_name_the_line(self):
        for page, message in (
            ("| a | Hearth tok/s | peer tok/s |\n| --- | --- | --- |\n| x | none yet | 3 |\n", "line 1: no cell under 'Hearth tok/s' begins with a number"),
            ("| a | Hearth tok/s | peer tok/s |\n| --- | --- | --- |\n", "line 1: no cell under 'Hearth tok/s' begins with a number"),
            ("\n| a | Hearth | peer |\n|---|---|---|\n| x | 3 | - |\n", "line 2: no cell under 'peer' begins with a number"),
            ("| a | Hearth tok/s |\n| --- | --- |\n| x | 3 |\n", "line 1: no column of a peer right of 'Hearth tok/s'"),
            ("| a | Hearth | peer |\n|---|---|---|\n| x | 3 |\n", "line 3: 2 cells under 3 headers"),
            ("| a | b |\n|---|---|\n| x | 3 |\n", 'no table has a column headed "Hearth ..."'),
            ("", 'no table has a column headed "Hearth ..."'),
        ):
            with self.assertRaises(plot.PageError) as caught:
                plot.read_tables(page)
            self.assertEqual(str(caught.exception), message)


class Command(unittest.TestCase):
    def run_plot(self, page, folder):
        path = Path(folder, "page.md")
        path.write_text(page, encoding="utf-8")
        return subprocess.run([sys.executable, PLOT, path, Path(folder, "plots")], capture_output=True, text=True, timeout=120)

    def test_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_plot(PAGE, folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            pictures = [Path(line) for line in done.stdout.splitlines()]
            self.assertEqual(sorted(pictures), sorted(Path(folder, "plots").iterdir()))
            self.assertEqual(len(pictures), 2)
            for picture in pictures:
                data = picture.read_bytes()
                self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
                self.assertEqual(data[-12:-4], b"\0\0\0\0IEND")
                width, height = struct.unpack(">II", data[16:24])
                self.assertTrue(600 <= width <= 2000 and 150 <= height <= 2000, (width, height))
                self.assertGreater(len(data), 4000)  # an empty canvas is smaller

    def test_a_table_without_numbers_draws_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_plot(PAGE.replace("25 |", "not yet |"), folder)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("page.md: line 8: no cell under 'peer ms'", done.stderr)
            self.assertFalse(Path(folder, "plots").exists())


if __name__ == "__main__":
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("python3-matplotlib is not installed")
        sys.exit(77)
    unittest.main()
