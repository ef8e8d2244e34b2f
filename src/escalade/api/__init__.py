"""The functions that users call, such as train, resume, evaluate, evolve and optimize."""
