"""What the README shows must run."""

import re
import subprocess
import sys


def test_python_snippets_run(root):
    snippets = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        result = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, cwd="/")
        assert result.returncode == 0, result.stderr


def test_files_it_names_exist(root):
    for page in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        text = (root / page).read_text()
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            assert ((root / page).parent / link).exists(), f"{page} names {link}"
        for path in re.findall(r"`((?:elliptical|tools|docs|bench|cmake)/[\w./-]+\.\w+)`", text):
            assert (root / path).exists(), f"{page} names {path}"
