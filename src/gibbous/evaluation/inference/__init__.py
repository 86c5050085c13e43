"""Inference: estimates from synthetic sets in, one estimate with an honest variance out."""
