"""What people look at: the summary of a run in the terminal, and a run while it goes on."""
