"""The web console: chat, approvals, memory and audit for the person at this machine."""
