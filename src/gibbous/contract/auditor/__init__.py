"""The auditor: attacks on what a method claims, on constructed tables alone."""
