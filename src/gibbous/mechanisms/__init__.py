"""One file a published method: frozen parameters, a plan before data, a run through the Curator."""
