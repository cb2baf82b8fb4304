"""From an event to a conversation and back: access, routing, commands, turns, cards, delivery."""
