"""A recorder that stores the rows and notes of a run."""


class Recording:
    """Stores rows and notes in order, and counts calls of ``close``."""

    def __init__(self):
        self.rows, self.notes, self.closed = [], [], 0

    def generation(self, row):
        self.rows.append(row)

    def note(self, text):
        self.notes.append(text)

    def close(self):
        self.closed += 1
