"""Who may do what: rules, guards, modes, and who may decide an approval."""
