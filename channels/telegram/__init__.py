"""Telegram, by python-telegram-bot's `Bot` and an own getUpdates loop."""
