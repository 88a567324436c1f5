"""How much load a target holds: a search over levels, and what its answer rests on."""
