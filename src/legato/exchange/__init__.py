"""Other tools' result files in, other formats out."""
