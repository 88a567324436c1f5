"""The instrument's own error on this machine: measured against the metronome's truth log."""
