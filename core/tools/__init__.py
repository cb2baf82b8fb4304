"""The built-in tools, and the wrapping that every tool call goes through."""
