"""Reading published checkpoints: files, layouts, and the way from their tensors to ours. No code of theirs is run."""
