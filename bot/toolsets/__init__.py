"""Tools of the application itself: what an agent may do to the chats of its host."""
