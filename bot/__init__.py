"""The application: configuration, wiring, conversations, console and command line."""
