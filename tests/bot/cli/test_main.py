"""The commands that look at a host and decide for it, as a person uses them one after the other."""

from tests.acceptance.processes import lodger, make_place, running_host


async def test_what_waits_is_listed_decided_once_and_seen_in_its_conversation(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place):
        await lodger(place, "chat", stdin="list files\n")
        listed = await lodger(place, "approvals")
        approval = listed.out.split()[0]
        unsaid = await lodger(place, "approvals", approval)
        denied = await lodger(place, "approvals", approval, "deny", "--reason", "not now")
        again = await lodger(place, "approvals", approval, "approve")
        nothing = await lodger(place, "approvals")
        unknown = await lodger(place, "approvals", "a/b?", "deny")
        conversation = (await lodger(place, "conversations")).out.split()[0]
        shown = await lodger(place, "conversations", conversation)

    assert listed.out.splitlines()[1] == '    {"command": "ls -la && echo hello from the sandbox"}'
    assert (unsaid.code, unsaid.out) == (2, "")
    assert (denied.code, denied.out.count("\n")) == (0, 1)
    assert "not decided" not in again.out
    assert nothing.out == "Nothing waits for a decision.\n"
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.count("\n") == 1
    lines = shown.out.splitlines()
    assert lines[0] == "1 user: list files"
    assert lines[1].startswith('2 assistant: I would like to run a command. Please decide. [shell {"command"')
    assert lines[2].startswith("3 tool: [denied]")
    assert "not now" in lines[2]


async def test_memory_is_shown_told_as_history_and_undone(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place):
        await lodger(place, "run", "-p", "remember that I like green tea")
        files = await lodger(place, "memory")
        notes = await lodger(place, "memory", "show", "notes.md")
        log = await lodger(place, "memory", "--agent", "lodger", "log")
        revision = log.out.split()[0]
        diff = await lodger(place, "memory", "diff", revision)
        undone = await lodger(place, "memory", "undo", revision)
        gone = await lodger(place, "memory", "show", "notes.md")
        unknown = await lodger(place, "memory", "diff", "no/such?")
        unsaid = await lodger(place, "memory", "diff")

    assert "notes.md  " in files.out
    assert notes.out.strip() == "- Noted: I like green tea"
    assert log.out.splitlines()[0].endswith("I like green tea")
    assert "+- Noted: I like green tea" in diff.out
    assert (undone.code, undone.out.count("\n")) == (0, 1)
    assert (gone.code, gone.err) == (1, "lodger: there is no 'notes.md' in the memory of lodger\n")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (1, "", 1)
    assert unsaid.code == 2


async def test_nobody_waits_to_be_let_in_and_a_wrong_code_lets_nobody_in(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place):
        assert (await lodger(place, "pair")).out == "Nobody waits to be let in.\n"
        wrong = await lodger(place, "pair", "abcdef")
        refused = await lodger(place, "migrate")
    migrated = await lodger(place, "migrate")

    assert wrong.out + wrong.err != ""
    assert "may talk" not in wrong.out
    assert (refused.code, refused.out) == (1, "")
    assert "is in use by process" in refused.err
    assert (migrated.code, migrated.out) == (0, "The database is at this version.\n")


async def test_help_names_every_command_and_a_wrong_one_is_a_usage_error(tmp_path):
    place = make_place(tmp_path)
    helped = await lodger(place, "--help")
    wrong = await lodger(place, "fly")
    assert (helped.code, wrong.code, wrong.out) == (0, 2, "")
    for name in ("up", "chat", "run", "agents", "conversations", "memory", "approvals", "pair", "migrate"):
        assert f"\n    {name}" in helped.out
