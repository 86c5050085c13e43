"""Reports and charts: one self-contained HTML file, public or internal, with its JSON twin."""
