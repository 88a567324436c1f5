"""Whether two sets of recordings differ, by how much, and how sure that is."""
