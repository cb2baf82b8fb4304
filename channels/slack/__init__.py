"""The Slack channel, over the Web API and Socket Mode or posted events."""
