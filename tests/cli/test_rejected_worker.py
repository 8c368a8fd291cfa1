"""A worker that is not let in: both sides say so, with what to do, and neither fills its log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.process import Process
from tests.processes.system import running


def warned(process: Process, word: str) -> dict[str, str]:
    """Wait for a warning with this word in its message."""

    def look() -> list[dict[str, str]]:
        # The last line may be half written.
        lines = [json.loads(line) for line in process.said().split("\n")[:-1] if line[:1] == "{"]
        return [one for one in lines if one["level"] == "warning" and word in one["message"]]

    return process.until(look, f"a warning of {word}")[0]


def test_a_worker_with_a_wrong_token_is_told_why_on_both_sides(tmp_path: Path) -> None:
    with running(tmp_path) as system:
        token = "not the token of this scheduler"
        worker = system.new_worker("rejected", ASTRA_WORKER_AUTH_TOKEN=token).start()
        said = warned(worker, "E.AUTH.INVALID_TOKEN")
        assert said["code"] == "E.AUTH.INVALID_TOKEN"
        assert "get a new token" in said["message"], "what to do"
        assert "reconnecting in " in said["message"], "and when"
        instance = (worker.folder / "kept" / "worker_instance_id").read_text().strip()
        seen = warned(system.scheduler, "E.AUTH.INVALID_TOKEN")
        assert (seen["tenant"], seen["worker"]) == ("default", instance)
        assert "127.0.0.1:" in seen["message"]
        assert token not in system.scheduler.said() + worker.said()
        worker.kill()  # told to end, it would first try to say goodbye to a scheduler that does not let it in
