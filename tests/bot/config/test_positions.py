from bot.config.positions import Position, key_positions, nearest_position

TEXT = '''# a comment with key = 1 and [header]
top = 1
"quoted key" = 2

[a.b]
  x = "[not] = a # header"
y.z = [
  "one", # ] = not the end
  { k = "v" },
]
long = """
fake = 1
[fake]
"""
literal = \'\'\'
fake2 = 1\'\'\'
last = 3

[[list]]
n = 1
[[list]]
n = 2
[list.sub]
m = 3
'''


def test_every_key_and_table_is_found_where_it_stands():
    positions = key_positions(TEXT)
    assert positions[("top",)] == Position(2, 1)
    assert positions[("quoted key",)] == Position(3, 1)
    assert positions[("a",)] == positions[("a", "b")] == Position(5, 2)
    assert positions[("a", "b", "x")] == Position(6, 3)
    assert positions[("a", "b", "y", "z")] == Position(7, 1)
    assert positions[("a", "b", "last")] == Position(17, 1)
    assert positions[("list", 0, "n")] == Position(20, 1)
    assert positions[("list", 1, "n")] == Position(22, 1)
    assert positions[("list", 1, "sub", "m")] == Position(24, 1)


def test_what_stands_in_texts_lists_and_comments_is_no_key():
    assert not any(key in path for path in key_positions(TEXT) for key in ("fake", "fake2", "k", "key", "header"))


def test_a_value_without_a_line_of_its_own_stands_where_its_table_does():
    positions = key_positions("[a]\nb = { c = 1 }\n")
    assert nearest_position(positions, ("a", "b", "c")) == Position(2, 1)
    assert nearest_position(positions, ("a", "missing")) == Position(1, 2)
    assert nearest_position(positions, ("other",)) is None
