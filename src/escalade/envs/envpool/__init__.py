"""EnvPool's environments: pools, their objects one by one, and ids that Gymnasium does not have."""
