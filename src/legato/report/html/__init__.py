"""`legato report --html`: one self-contained page a recording, and its charts as images."""
