"""What the encoder families have in common: masks, attention, heads, losses, outputs."""
