"""Bugs, each as one change of the source, and the tests that must find it."""

from dataclasses import dataclass

INVARIANTS = "tests/acceptance/invariants"
ONE_RUN = f"{INVARIANTS}/test_invariant_02_one_active_run.py"
TRANSCRIPTS = f"{INVARIANTS}/test_invariant_03_valid_transcripts.py"
PREFIX = f"{INVARIANTS}/test_invariant_04_prefix_stability.py"
COMMITTED = f"{INVARIANTS}/test_invariant_05_committed_memory.py"
ADMISSION = f"{INVARIANTS}/test_invariant_06_memory_admission.py"
GUARDS = f"{INVARIANTS}/test_invariant_08_guards_before_mode.py"
APPROVALS = f"{INVARIANTS}/test_invariant_09_bound_approvals.py"
ORIGIN = f"{INVARIANTS}/test_invariant_12_sealed_origin.py"
VIEW = "tests/core/backends/local/test_view.py"
CONFLICTS = "tests/core/turns/test_conflicting_calls.py"
ANSWERS = "tests/core/turns/test_answers.py"
LOOP = "tests/core/turns/test_loop.py"
STORES = "tests/contracts/test_store_contract.py"
WEBHOOK = "tests/channels/telegram/test_webhook.py"
POLLING = "tests/channels/telegram/test_polling.py"
PACING = "tests/channels/test_pacing.py"
CONVERSATIONS = "tests/bot/conversations"
OUTBOX = f"{CONVERSATIONS}/test_outbox.py"
RESTARTS = f"{CONVERSATIONS}/test_outbox_restarts.py"
OPENING = f"{CONVERSATIONS}/test_turn_opening.py"
ENDING = f"{CONVERSATIONS}/test_turn_ending.py"
STEERING = f"{CONVERSATIONS}/test_worker_steering.py"
HEARING = f"{CONVERSATIONS}/test_hearing.py"
GROUPS = f"{CONVERSATIONS}/test_groups.py"
REVISIONS = f"{CONVERSATIONS}/test_revisions.py"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """In `file`, `old` stands exactly once and is replaced by `new`; then one of `tests` fails.

    `invariant` is the number of the promise in the design that it breaks; None for a rule that has none.
    """

    name: str
    invariant: int | None
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        name="a memory change rewrites the prompt",
        invariant=4,
        file="core/backends/local/prompting.py",
        old="    if reason or state.prompt is None:\n",
        new="    if reason or state.prompt is None or head != state.prompt.seen_revision:\n",
        tests=(f"{PREFIX}::test_a_memory_commit_by_anybody_leaves_the_prefix_of_an_open_conversation_alone",),
    ),
    Mutant(
        name="a reminder in the system prompt",
        invariant=4,
        file="core/backends/local/backend.py",
        old="            system=prepared.prompt.text,\n",
        new="            system=prepared.prompt.text\n"
        '            + "".join(part.text for row in rows for part in row.parts if hasattr(part, "kind")),\n',
        tests=(f"{PREFIX}::test_nothing_of_the_moment_or_the_place_is_in_the_system_prompt",),
    ),
    Mutant(
        name="uncommitted bytes compiled",
        invariant=5,
        file="core/memory/git.py",
        old="            return str(self._git.references[HEAD].target)\n",
        new="            objects = (self._git[oid] for oid in self._git)\n"
        "            commits = [found for found in objects if isinstance(found, pygit2.Commit)]\n"
        "            return str(max(commits, key=lambda commit: commit.commit_time).id) if commits else None\n",
        tests=(f"{COMMITTED}::test_what_was_written_but_never_published_is_not_compiled_and_not_read",),
    ),
    Mutant(
        name="an unpublished revision can be read by its name",
        invariant=5,
        file="core/memory/git.py",
        old="        if full != head and not self._git.descendant_of(head, full):\n",
        new="        if full is None:\n",
        tests=(f"{COMMITTED}::test_an_unpublished_revision_cannot_be_asked_for_by_its_name",),
    ),
    Mutant(
        name="a memory update evaporates after its request",
        invariant=5,
        file="core/backends/local/backend.py",
        old="            rows = _with_update(rows, prepared.update)\n",
        new="            rows = list(rows)\n",
        tests=(f"{COMMITTED}::test_news_reach_an_open_conversation_once_and_stay_in_its_transcript",),
    ),
    Mutant(
        name="a change of memory goes round admission",
        invariant=6,
        file="core/memory/store.py",
        old="        question = self._judge(repository.tree(head), tree, origin)\n"
        "        if question is not None and not origin.approved:\n",
        new="        question = None\n        if question is not None and not origin.approved:\n",
        tests=(
            f"{ADMISSION}::test_no_author_commits_what_breaks_the_rules",
            f"{ADMISSION}::test_an_undo_is_admitted_like_any_other_change",
        ),
    ),
    Mutant(
        name="the policy of a memory is loosened without a person",
        invariant=6,
        file="core/memory/store.py",
        old="        if question is not None and not origin.approved:\n",
        new="        if question is not None and not question.text:\n",
        tests=(f"{ADMISSION}::test_loosening_without_an_approval_is_refused_by_the_store_itself",),
    ),
    Mutant(
        name="a second run beside an active one",
        invariant=2,
        file="core/stores/runs.py",
        old="    if active is not None:\n        raise ConversationBusy(conversation_id, active)\n",
        new='    connection.execute(_FINISH_RUN, {"of_run": active or "", "status": RunStatus.FINISHED.value})\n',
        tests=(f"{ONE_RUN}::test_of_many_starts_at_once_one_becomes_active",),
    ),
    Mutant(
        name="a lost claim may still write",
        invariant=2,
        file="core/stores/claims.py",
        old="        raise StaleClaim(claim.conversation_id, claim.epoch)\n",
        new="        return\n",
        tests=(f"{STORES}::test_no_write_under_an_older_claim_leaves_a_trace",),
    ),
    Mutant(
        name="no settling",
        invariant=3,
        file="core/backends/local/backend.py",
        old="        if not pending:\n            return []\n",
        new="        return []\n",
        tests=(f"{TRANSCRIPTS}::test_calls_of_a_turn_that_was_given_up_are_settled_before_the_next_input",),
    ),
    Mutant(
        name="a call without a result in the view",
        invariant=3,
        file="core/backends/local/view.py",
        old="        if stored is not None:\n            yield stored\n        else:\n",
        new="        if stored is not None:\n            yield stored\n        elif call is None:\n",
        tests=(f"{VIEW}::test_a_missing_result_says_that_nobody_knows",),
    ),
    Mutant(
        name="a parked call settled",
        invariant=3,
        file="core/backends/local/backend.py",
        old="                if parked:\n",
        new="                if parked is None:\n",
        tests=(f"{ANSWERS}::test_a_user_input_over_parked_calls_is_refused",),
    ),
    Mutant(
        name="a call that was started is run again",
        invariant=3,
        file="core/turns/answers.py",
        old="                result = text_return(record.call.id, INTERRUPTED, ReturnOutcome.UNKNOWN)\n",
        new="                result = await self._services.perform(\n"
        "                    self._work.toolset, record.call, self._context(record.call)\n                )\n",
        tests=(f"{TRANSCRIPTS}::test_a_worker_that_dies_in_a_tool_leaves_a_call_that_the_next_one_settles",),
    ),
    Mutant(
        name="two shell calls in parallel",
        invariant=None,
        file="core/tools/access.py",
        old="        return _touches(a, workspace) and _touches(b, workspace)\n",
        new="        return False\n",
        tests=(f"{CONFLICTS}::test_a_shell_call_does_not_begin_while_an_earlier_one_of_its_step_runs",),
    ),
    Mutant(
        name="headless ask executes",
        invariant=8,
        file="core/turns/answers.py",
        old="        if verdict.action is Action.ALLOW:\n            question",
        new="        if not self._work.turn.interactive:\n"
        '            verdict = Verdict(action=Action.ALLOW, rule="headless", reason="nobody is there")\n'
        "        if verdict.action is Action.ALLOW:\n            question",
        tests=(f"{LOOP}::test_headless_denies_what_would_be_asked_and_the_model_goes_on",),
    ),
    Mutant(
        name="a guard behind the mode",
        invariant=8,
        file="core/permissions/policy.py",
        old="            _guarded(case)\n            or self._denied(case)\n",
        new="            _moded(case)\n            or _guarded(case)\n            or self._denied(case)\n",
        tests=(f"{GUARDS}::test_no_mode_and_no_rule_lets_a_call_out_of_the_workspace",),
    ),
    Mutant(
        name="a guard that is not asked again at execution",
        invariant=8,
        file="core/turns/answers.py",
        old="        if verdict.action is Action.DENY:\n            return self._immediate_refusal(call, verdict)\n",
        new="",
        tests=(f"{GUARDS}::test_a_link_that_is_put_in_the_way_while_a_call_waits_stops_it_at_execution",),
    ),
    Mutant(
        name="a decision without compare-and-set",
        invariant=9,
        file="core/stores/approvals.py",
        old="            APPROVALS.c.id == approval_id,\n            APPROVAL_IS_OPEN,\n",
        new="            APPROVALS.c.id == approval_id,\n",
        tests=(f"{APPROVALS}::test_many_presses_at_once_are_one_decision",),
    ),
    Mutant(
        name="a decision on something else than was shown",
        invariant=9,
        file="core/stores/approvals.py",
        old="            APPROVALS.c.hash == hash_shown,\n",
        new="",
        tests=(f"{APPROVALS}::test_a_decision_on_another_text_than_the_stored_one_changes_nothing",),
    ),
    Mutant(
        name="an approval for all equal calls",
        invariant=9,
        file="core/stores/approvals.py",
        old="            TOOL_CALLS.c.call_id == approval.call_id,\n",
        new="",
        tests=(f"{APPROVALS}::test_a_press_releases_the_shown_call_and_no_equal_one",),
    ),
    Mutant(
        name="silence is consent",
        invariant=9,
        file="core/stores/approvals.py",
        old="            APPROVALS.c.expires_at > now,\n",
        new="",
        tests=(f"{APPROVALS}::test_a_press_after_the_deadline_is_too_late_even_when_nothing_has_expired_it_yet",),
    ),
    Mutant(
        name="a button that anybody may press",
        invariant=9,
        file="bot/conversations/presses.py",
        old="        if not may_decide(who.person, who.role, approval, self._approvers()):\n",
        new="        if not who.may_talk:\n",
        tests=(f"{APPROVALS}::test_who_may_not_decide_decides_nothing",),
    ),
    Mutant(
        name="acknowledged before committed",
        invariant=11,
        file="channels/telegram/polling.py",
        old="        read = [(update, await intake.read(update)) for update in in_order]\n",
        new="        read = [(update, await intake.read(update)) for update in in_order]\n"
        "        if updates:\n"
        '            await self._api.updates(in_order[-1]["update_id"] + 1, wait=timedelta(0))\n',
        tests=(f"{POLLING}::test_an_update_is_confirmed_only_after_it_was_accepted_c04",),
    ),
    Mutant(
        name="an event that could not be stored is confirmed",
        invariant=11,
        file="channels/telegram/polling.py",
        old="            if event is not None and not await intake.hand_over(event, sink):\n                break\n",
        new="            if event is not None:\n                await intake.hand_over(event, sink)\n",
        tests=(f"{POLLING}::test_what_a_killed_process_had_fetched_comes_again_after_the_restart_c04",),
    ),
    Mutant(
        name="a webhook is answered before its update is stored",
        invariant=11,
        file="channels/telegram/webhook.py",
        old="HTTPStatus.OK if await accepted else",
        new="HTTPStatus.OK if accepted else",
        tests=(f"{WEBHOOK}::test_an_update_is_answered_only_after_it_was_stored",),
    ),
    Mutant(
        name="the answer goes where the conversation is now",
        invariant=12,
        file="bot/conversations/turn_ending.py",
        old="            first = replace(notice(final_id(turn.id), turn.origin, text), reply_to=reply_to)\n",
        new="            binding = await self._delivery.binding_of(turn.conversation_id)\n"
        "            first = replace(notice(final_id(turn.id), binding.address, text), reply_to=reply_to)\n",
        tests=(f"{ORIGIN}::test_a_conversation_that_moves_while_a_turn_waits_does_not_take_its_answer_along",),
    ),
    Mutant(
        name="silence looks like an accident",
        invariant=12,
        file="core/turns/loop.py",
        old="        if _is_silence(answers, await self._services.backend.pending_calls(work.conversation.id)):\n"
        "            return TurnResult(outcome=TurnOutcome.SILENT, text=work.text)\n",
        new="        if _is_silence(answers, await self._services.backend.pending_calls(work.conversation.id)):\n"
        "            return TurnResult(outcome=TurnOutcome.EMPTY, text=work.text)\n",
        tests=(f"{ORIGIN}::test_silence_is_a_typed_result_and_says_nothing_anywhere",),
    ),
    Mutant(
        name="a message is sent again without a look for it",
        invariant=11,
        file="bot/conversations/outbox.py",
        old="        if await self._was_found(channel, row):\n            return True\n        if channel",
        new="        if channel",
        tests=(f"{OUTBOX}::test_what_a_dead_process_was_sending_is_looked_for_first",),
    ),
    Mutant(
        name="a message is marked as sent before it is",
        invariant=11,
        file="bot/conversations/outbox.py",
        old="        try:\n            external_id = await channel.deliver(masked(row.item, self._mask))\n",
        new='        await self._store.mark_sent(row.item.id, "", content=row.item.content)\n'
        "        try:\n            external_id = await channel.deliver(masked(row.item, self._mask))\n",
        tests=(f"{RESTARTS}::test_a_text_is_visible_twice_at_most_however_often_the_host_dies_while_it_is_sent",),
    ),
    Mutant(
        name="sends of unknown outcome are counted by each process for itself",
        invariant=11,
        file="bot/conversations/outbox.py",
        old="        if await self._store.count_unknown(row.item.id, limit=limit, until=until, error=error) < limit:\n",
        new='        counts = self.__dict__.setdefault("_counts", {})\n'
        "        counts[row.item.id] = counts.get(row.item.id, 0) + 1\n"
        "        if limit is None or counts[row.item.id] < limit:\n",
        tests=(f"{RESTARTS}::test_lost_answers_count_over_restarts",),
    ),
    Mutant(
        name="previews and finals of a chat are two writers",
        invariant=None,
        file="channels/pacing.py",
        old="        with _using(self._lane(chat)) as lane:\n            while True:\n",
        new='        with _using(self._lane(f"{chat}/preview")) as lane:\n            while True:\n',
        tests=(
            f"{PACING}::test_calls_of_one_chat_never_overlap",
            f"{PACING}::test_nothing_goes_out_before_the_time_the_platform_asked_for_c15",
        ),
    ),
    Mutant(
        name="messages of two people or places are one turn",
        invariant=12,
        file="bot/conversations/turn_opening.py",
        old="takewhile(lambda row: is_late(row) and _is_beside(row, first), queued[1:])",
        new="takewhile(is_late, queued[1:])",
        tests=(
            f"{OPENING}::test_messages_of_two_people_are_two_turns",
            f"{OPENING}::test_late_messages_end_at_whoever_else_spoke_and_at_what_came_in_time",
        ),
    ),
    Mutant(
        name="what enters a turn is marked only when its run has begun",
        invariant=11,
        file="bot/conversations/steering.py",
        old="            try:\n                await self._ledger.steer_turn("
        "self._claim, self._turn.id, [row.id for row in rows], step=step)\n",
        new="            start = self._backend.start_run\n\n"
        "            async def start_and_mark(*words, **options):\n"
        "                self._backend.start_run = start\n"
        "                run = await start(*words, **options)\n"
        "                await self._ledger.steer_turn("
        "self._claim, self._turn.id, [row.id for row in rows], step=step)\n"
        "                return run\n\n"
        "            try:\n"
        "                self._backend.start_run = start_and_mark\n"
        "                return await self._openings.steer(rows, requester=self._turn.requester)\n",
        tests=(f"{STEERING}::test_no_crash_loses_a_message_that_enters_or_lets_it_in_twice",),
    ),
    Mutant(
        name="talk in a group that is not for the agent starts a turn",
        invariant=None,
        file="bot/conversations/reception.py",
        old="meant = is_open and await ports.hearing.is_meant(rows)",
        new="meant = is_open",
        tests=(f"{HEARING}::test_by_default_a_group_is_answered_when_it_mentions_the_agent",),
    ),
    Mutant(
        name="a stranger lets the agent into a group",
        invariant=None,
        file="bot/conversations/groups.py",
        old="        if who.role is not PersonRole.OWNER:\n",
        new="        if not who.person.id:\n",
        tests=(f"{GROUPS}::test_only_an_owners_press_counts",),
    ),
    Mutant(
        name="the edit of a message that was answered is answered",
        invariant=None,
        file="bot/conversations/router.py",
        old="                await self._ports.revisions.edit(row, body)\n",
        new="                from dataclasses import replace\n\n"
        "                event = replace(row.event, body=MessageBody(text=body.text))\n"
        "                return await self._receive([replace(row, event=event)])\n",
        tests=(
            f"{REVISIONS}::test_an_edit_of_what_was_answered_is_told_with_the_next_turn_and_never_answered_by_itself",
        ),
    ),
    Mutant(
        name="the beginning of the secret opens the webhook",
        invariant=None,
        file="channels/telegram/webhook.py",
        old="not hmac.compare_digest(secrets[0], self._secret.encode())",
        new="not self._secret.encode().startswith(secrets[0])",
        tests=(f"{WEBHOOK}::test_a_call_without_the_secret_is_refused_unread",),
    ),
    Mutant(
        name="an answer that comes late is an edit",
        invariant=None,
        file="bot/conversations/turn_ending.py",
        old="        return self._clock.now() - row.shown_at > LATE_FINAL\n",
        new="        return False\n",
        tests=(f"{ENDING}::test_a_crash_at_the_end_of_a_turn_changes_nothing_about_a_late_answer",),
    ),
)
