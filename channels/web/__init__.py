"""The drawing of web chats: what a browser is shown, as safe HTML."""
