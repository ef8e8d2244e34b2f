"""The findings of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """The findings of :func:`escalade.check`."""

    env: str
    backend: str | None
    """The backend that would step it; None when it cannot be trained on."""
    findings: tuple[Finding, ...]
    steps_per_second: float | None
    """Environment steps per second of one process with random actions; None when it cannot be stepped."""

    @property
    def ok(self) -> bool:
        """True where nothing failed; warnings do not count."""
        return all(finding.status != "failed" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self) | {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}
