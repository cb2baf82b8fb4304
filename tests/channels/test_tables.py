from channels.markdown import Link, Text, parse
from channels.tables import draw_table, links_of


def table(markdown):
    (block,) = parse(markdown)
    return block


def test_columns_are_as_wide_as_their_widest_cell_and_aligned():
    drawn = draw_table(table("| a | right | mid |\n|---|--:|:-:|\n| long cell | 1 | x |"))

    assert drawn == "a         | right | mid\n----------+-------+----\nlong cell |     1 |  x"


def test_wide_and_combined_characters_count_as_the_columns_they_take():
    drawn = draw_table(table("| 漢字 | b |\n|---|---|\n| e\u0301 | c |\n| abcd | d |"))

    assert drawn.splitlines() == ["漢字 | b", "-----+--", "e\u0301    | c", "abcd | d"]


def test_cells_are_shown_without_formatting_and_missing_ones_empty():
    assert draw_table(table("| a | **b** |\n|---|---|\n| `c` ~~d~~ |")) == "a   | b\n----+--\nc d |"


def test_a_very_long_cell_reaches_over_its_column():
    first, line, second = draw_table(table(f"| a | b |\n|---|---|\n| {'x' * 200} | c |")).splitlines()

    assert first == "a" + " " * 31 + " | b"
    assert line == "-" * 32 + "-+--"
    assert second == "x" * 200 + " | c"


def test_the_links_of_a_table_are_listed_once_wherever_they_stand():
    found = links_of(table("| [a](https://a.b) | **[a](https://a.b)** |\n|---|---|\n| ![c](https://d.e) | x |"))

    assert found == (
        Link(url="https://a.b", children=(Text(text="a"),)),
        Link(url="https://d.e", children=(Text(text="c"),)),
    )
