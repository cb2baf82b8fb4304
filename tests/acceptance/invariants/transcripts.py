"""What makes a request valid for every provider, and one a continuation of another."""

from core.contracts.messages import Message, Role, ToolReturn, tool_calls
from core.contracts.models import ModelRequest


def faults_of(messages: tuple[Message, ...]) -> list[str]:
    """Return what is wrong with a view: its beginning, a call without its one result, a result without its call."""
    faults = [] if messages and messages[0].role is Role.USER else ["it does not begin with a person"]
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            (answer,) = message.parts
            if not isinstance(answer, ToolReturn) or not waiting or answer.call_id != waiting.pop(0):
                faults.append(f"{message.id} answers nothing that was asked just before")
            continue
        if waiting:
            faults.append(f"{message.id} comes before the results of {waiting}")
        waiting = [call.id for call in tool_calls(message.parts)]
    return [*faults, *(f"{call} has no result" for call in waiting)]


def continues(before: ModelRequest, after: ModelRequest) -> bool:
    """Whether a request is an earlier one plus a tail, system prompt and tool schemas included."""
    return (
        after.system == before.system
        and [repr(tool) for tool in after.tools] == [repr(tool) for tool in before.tools]
        and after.messages[: len(before.messages)] == before.messages
    )
