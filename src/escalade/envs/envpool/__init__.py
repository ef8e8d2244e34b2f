"""EnvPool's environments: as batches, as single objects, and those that Gymnasium does not have."""
