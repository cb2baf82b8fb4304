"""What a model is told: the compiled system prompt and the host's reminders, byte for byte stable."""
