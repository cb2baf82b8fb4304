"""Emoji as characters, and as the names that Slack has for them; pure."""

from __future__ import annotations

import re
import unicodedata

_STYLE = "\N{VARIATION SELECTOR-16}"
_NAME = re.compile(r":?([a-z0-9_+'-]+(?:::skin-tone-[2-6])?):?")
_TONES = {chr(0x1F3FB + number): f"::skin-tone-{number + 2}" for number in range(5)}

_TABLE = """
👍 +1 👎 -1 👌 ok_hand 👏 clap 🙏 pray 🙌 raised_hands 👋 wave 🤝 handshake 💪 muscle ✌ v 🤞 crossed_fingers
👀 eyes 🤷 shrug 🤦 face_palm ✋ hand 👉 point_right 👈 point_left 👆 point_up_2 👇 point_down
🫡 saluting_face ✅ white_check_mark ☑ ballot_box_with_check ✔ heavy_check_mark ❌ x
❎ negative_squared_cross_mark ❓ question ❔ grey_question ❗ exclamation ❕ grey_exclamation ⚠ warning
🚫 no_entry_sign ⛔ no_entry 🛑 octagonal_sign ❤ heart 🧡 orange_heart 💛 yellow_heart 💚 green_heart
💙 blue_heart 💜 purple_heart 🖤 black_heart 💔 broken_heart 🎉 tada 🎊 confetti_ball 🎁 gift 🏆 trophy
🥇 first_place_medal ⭐ star 🌟 star2 ✨ sparkles 🔥 fire 💯 100 🚀 rocket 💡 bulb 🎯 dart 📌 pushpin
📎 paperclip 📝 memo 📖 book 📚 books 📅 date 📈 chart_with_upwards_trend 📦 package 📣 mega 🔔 bell
🔕 no_bell 🔍 mag 🔎 mag_right 🔒 lock 🔓 unlock 🔑 key 🔧 wrench 🔨 hammer 🛠 hammer_and_wrench ⚙ gear
⏳ hourglass_flowing_sand ⌛ hourglass ⏰ alarm_clock ⏱ stopwatch 🕐 clock1 🔄 arrows_counterclockwise
♻ recycle 🐛 bug 🤖 robot_face 👻 ghost 💀 skull 💩 hankey 🐢 turtle 🐌 snail 🦄 unicorn_face 🍾 champagne
🍕 pizza ☕ coffee 😀 grinning 😃 smiley 😄 smile 😁 grin 😆 laughing 😅 sweat_smile 😂 joy
🤣 rolling_on_the_floor_laughing 🙂 slightly_smiling_face 🙃 upside_down_face 😉 wink 😊 blush 😇 innocent
🥰 smiling_face_with_3_hearts 😍 heart_eyes 🤩 star-struck 😎 sunglasses 🤓 nerd_face 🤔 thinking_face
🤨 face_with_raised_eyebrow 😐 neutral_face 😑 expressionless 🙄 face_with_rolling_eyes 😏 smirk
😌 relieved 😴 sleeping 😕 confused 😟 worried 🙁 slightly_frowning_face 😮 open_mouth 😯 hushed
😲 astonished 😳 flushed 😢 cry 😭 sob 😱 scream 😤 triumph 😡 rage 😠 angry 🤬 face_with_symbols_on_mouth
🤯 exploding_head 🥳 partying_face 🤗 hugging_face 🤐 zipper_mouth_face 🫠 melting_face
🥲 smiling_face_with_tear 😬 grimacing 😞 disappointed 😔 pensive
"""
_NAMES = dict(zip(_TABLE.split()[::2], _TABLE.split()[1::2], strict=True))
_ALIASES = {"thumbsup": "+1", "thumbsdown": "-1", "heavy_exclamation_mark": "exclamation", "raised_hand": "hand"}
_CHARACTERS = {name: char for char, name in _NAMES.items()}


def slack_name(emoji: str) -> str:
    """Return Slack's name of an emoji, given as a character or by that name, with or without colons.

    For a character that is not in the table it is what Unicode calls it, which often is Slack's name
    too; empty where there is no telling.
    """
    bare = emoji.strip().replace(_STYLE, "")
    if named := _NAME.fullmatch(bare):
        return _ALIASES.get(named[1], named[1])
    tone = _TONES.get(bare[-1:], "")
    char = bare[: len(bare) - 1] if tone else bare
    name = _NAMES.get(char) or (unicodedata.name(char, "").lower().replace(" ", "_") if len(char) == 1 else "")
    return name + tone if _NAME.fullmatch(name) else ""


def emoji_of(name: str) -> str:
    """Return the character of one of Slack's names; one that is not in the table stays a name between colons."""
    bare, _, tone = name.partition("::")
    char = _CHARACTERS.get(_ALIASES.get(bare, bare))
    if char is None:
        return f":{name}:"
    return char + next((mark for mark, suffix in _TONES.items() if suffix == f"::{tone}"), "")
