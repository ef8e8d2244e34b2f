"""A recorder that keeps what a run tells it."""


class Told:
    """Keeps rows and notes in order, and counts how often it was closed."""

    def __init__(self):
        self.rows, self.notes, self.closed = [], [], 0

    def generation(self, row):
        self.rows.append(row)

    def note(self, text):
        self.notes.append(text)

    def close(self):
        self.closed += 1
