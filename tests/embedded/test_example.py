"""The example of docs/embedded.md is a program that runs."""

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs/embedded.md"


def test_the_example_prints_what_the_document_says() -> None:
    text = DOCUMENT.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    said = re.search(r"It prints `(.*?)`", text)
    assert said is not None
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said[1], "")
