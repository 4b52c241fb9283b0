import contextlib
import io
import json
import os
import re
import unittest
from pathlib import Path
from unittest import mock

from tests import loopback

README = Path(__file__).parent.parent / "README.md"


class Readme(unittest.TestCase):
    def test_the_example_runs_as_printed(self):
        [example] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
        printed = io.StringIO()
        with loopback.Server(chunked=True) as server:
            server.handled.release(len(loopback.PIECES))
            with mock.patch.dict(os.environ, URL=server.url), contextlib.redirect_stdout(printed):
                exec(compile(example, str(README), "exec"), {})
        record = json.loads(printed.getvalue())
        self.assertEqual((record["status"], record["output_tokens"], record["scenario"]), (200, 2, "hello"))
        self.assertTrue(record["stream"]["done_received"])


if __name__ == "__main__":
    unittest.main()
