import unittest

from tracejoin_client import Event, Parser

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b"data: one\r\n\r\n"
    b"event: named\rdata:two\rdata: lines\r\r"
    b"id: 7\ndata: \xc3\xa9\n\n"
    b"event: without data\n\n"
    b"data: not whole"
)
EVENTS = [Event("one"), Event("two\nlines", "named"), Event("\u00e9", "", "7")]


class Parsing(unittest.TestCase):
    def test_every_cut_gives_the_same_events(self):
        for size in range(1, len(STREAM) + 1):
            parser, events = Parser(), []
            for at in range(0, len(STREAM), size):
                events += parser.feed(STREAM[at:at + size])
                events += parser.feed(b"")
            self.assertEqual(events, EVENTS, f"chunks of {size} bytes")

    def test_a_line_end_in_two_chunks_is_one(self):
        parser = Parser()
        self.assertEqual(parser.feed(b"data: a\r"), [])
        self.assertEqual(parser.feed(b"\n"), [])
        self.assertEqual(parser.feed(b"\n"), [Event("a")])


if __name__ == "__main__":
    unittest.main()
