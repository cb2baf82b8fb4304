from channels.markdown import parse
from channels.telegram.entities import format_blocks
from channels.telegram.formatted import ENTITY_LIMIT, Entity, Formatted, Kind, settled


def entity(kind, start, end, detail=""):
    return Entity(kind=kind, start=start, end=end, detail=detail)


def test_entities_are_given_to_telegram_in_utf16_units():
    formatted = Formatted(
        text="\U0001f600 a\U0001f680b c",
        entities=(entity(Kind.LINK, 2, 5, "https://a.b"), entity(Kind.BOLD, 3, 4), entity(Kind.PRE, 6, 7, "py")),
    )

    assert formatted.as_parameter() == [
        {"type": "text_link", "offset": 3, "length": 4, "url": "https://a.b"},
        {"type": "bold", "offset": 4, "length": 2},
        {"type": "pre", "offset": 8, "length": 1, "language": "py"},
    ]
    assert Formatted(text="a", entities=(entity(Kind.PRE, 0, 1),)).as_parameter() == [
        {"type": "pre", "offset": 0, "length": 1}
    ]


def test_what_looks_bold_goes_on_around_code_and_a_quote_holds_it():
    bold, quote, code = entity(Kind.BOLD, 0, 7), entity(Kind.QUOTE, 0, 7), entity(Kind.CODE, 2, 5)

    assert settled("a bcd e", (code, bold, quote)).entities == (
        quote,
        entity(Kind.BOLD, 0, 1),
        code,
        entity(Kind.BOLD, 6, 7),
    )


def test_entities_stand_in_order_outer_ones_first():
    entities = (entity(Kind.ITALIC, 0, 1), entity(Kind.BOLD, 0, 3), entity(Kind.PRE, 4, 5), entity(Kind.QUOTE, 4, 5))

    assert [e.kind for e in settled("a b c", entities).entities] == [Kind.BOLD, Kind.ITALIC, Kind.QUOTE, Kind.PRE]


def test_of_more_entities_than_telegram_shows_code_and_links_stay():
    markdown = "".join(f"*i{n}* **b{n}** `c{n}` [l{n}](https://x.example/{n})\n" for n in range(49))
    formatted = format_blocks(parse(markdown + "```\np\n```"))
    sent = [entity["type"] for entity in formatted.as_parameter()]

    assert len(formatted.entities) == 49 * 4 + 1
    assert len(sent) == ENTITY_LIMIT
    assert (sent.count("pre"), sent.count("text_link"), sent.count("code"), sent.count("bold")) == (1, 49, 49, 1)
    assert not formatted.loses_content


def test_more_links_than_telegram_shows_are_not_silently_lost():
    links = "[l](https://x.example) " * (ENTITY_LIMIT + 1)

    assert format_blocks(parse(links)).loses_content


def test_a_text_is_cut_with_its_entities():
    formatted = format_blocks(parse("ab **c \U0001f600 d** *e*"))

    assert formatted.beginning(6) == Formatted(text="ab c", entities=(Entity(kind=Kind.BOLD, start=3, end=4),))
    assert formatted.beginning(7) == Formatted(
        text="ab c \U0001f600", entities=(Entity(kind=Kind.BOLD, start=3, end=6),)
    )
    assert formatted.beginning(99) == formatted


def test_outer_blanks_of_a_text_go_and_its_entities_move():
    bold = Entity(kind=Kind.BOLD, start=0, end=6)

    assert settled("  a b \n", (bold,)) == Formatted(text="a b", entities=(Entity(kind=Kind.BOLD, start=0, end=3),))
    assert settled(" \n", (Entity(kind=Kind.BOLD, start=0, end=2),)) == Formatted(text="")
