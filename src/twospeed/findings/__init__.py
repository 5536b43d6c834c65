"""Records, fits and limits in; named causes with evidence out."""
