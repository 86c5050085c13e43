"""Tables of DuckDB, SQLite, PostgreSQL and ibis as sources: slices of columns, and nothing counted."""
