"""Where a gap came from: a statistical attribution of gaps to what was seen around them."""
